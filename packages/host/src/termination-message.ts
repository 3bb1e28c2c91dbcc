import { closeSync, constants, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs';

/** kubelet reads no more of a termination message. */
const maxBytes = 4096;

/**
 * Writes why this process ends into the file that kubelet made for it (`terminationMessagePath`), in place of what it holds; `kubectl
 * describe pod` then shows it. Writes at most 4,096 bytes. Does nothing where the file is missing, is no regular file or
 * cannot be written: a process outside a pod has none.
 */
export function writeTerminationMessage(file: string, text: string): void {
  try {
    const fd = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      if (fstatSync(fd).isFile()) replaceContent(fd, text);
    } finally {
      closeSync(fd);
    }
  } catch {
    // The line on stderr says the same.
  }
}

function replaceContent(fd: number, text: string): void {
  const bytes = new Uint8Array(maxBytes);
  const { written } = new TextEncoder().encodeInto(text, bytes); // leaves out a character that does not fit whole
  ftruncateSync(fd);
  writeSync(fd, bytes, 0, written);
}
