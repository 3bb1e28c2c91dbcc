import { join } from 'node:path';
import { type HaproxyFiles, haproxyFiles } from '../haproxy/haproxy-files.ts';

/**
 * Where everything of one run of a container is. In the image it belongs to HAProxy's user and to group root, mode 0770:
 * the worker is root without any right to override that.
 */
export const containerRunDirectory = '/run/switchyard-lb';

/** Written into the image by its build: `renderBase(containerFiles)`. */
export const containerBaseFile = '/etc/switchyard-lb/haproxy.cfg';

/** HAProxy's files in a container. */
export const containerFiles: HaproxyFiles = { ...haproxyFiles(containerRunDirectory), base: containerBaseFile };

/** What the worker applied last. */
export const appliedFile: string = join(containerRunDirectory, 'applied.json');

/**
 * What a container runs, as its HAProxy user with group root. It begins with nothing but the base, also after a restart: addresses of
 * an earlier run are not there yet, and HAProxy would not start. The shell becomes HAProxy, which is process 1.
 */
export const containerCommand: readonly string[] = [
  '/bin/sh',
  '-c',
  [
    `rm -rf ${containerRunDirectory}/*`,
    'umask 0007',
    `exec haproxy -W -S ${containerFiles.masterSocket},mode,660 -f ${containerBaseFile} -f ${containerRunDirectory}`,
  ].join('; '),
];
