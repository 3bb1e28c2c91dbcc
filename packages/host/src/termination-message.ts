import { closeSync, constants, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs';

/** kubelet's limit of a termination message. */
const maxBytes = 4096;

/**
 * Replaces the content of kubelet's `terminationMessagePath` file with the reason why this process ends; `kubectl describe pod`
 * shows it. Writes at most 4,096 bytes. Does nothing if the file is missing, not regular or not writable, as outside a pod.
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
    // stderr has the same text.
  }
}

function replaceContent(fd: number, text: string): void {
  const bytes = new Uint8Array(maxBytes);
  const { written } = new TextEncoder().encodeInto(text, bytes); // leaves out a character that does not fit whole
  ftruncateSync(fd);
  writeSync(fd, bytes, 0, written);
}
