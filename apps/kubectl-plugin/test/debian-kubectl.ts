import { debianRoot } from '../../../tools/debian/debian-root.ts';

/** Path of Debian's kubectl. */
export async function debianKubectl(signal: AbortSignal): Promise<string> {
  const root = await debianRoot({ packages: ['kubernetes-client'], exclude: ['libc6'], signal });
  return `${root}/usr/bin/kubectl`;
}
