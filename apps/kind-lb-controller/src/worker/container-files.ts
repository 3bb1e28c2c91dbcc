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

/** File with the last applied state. */
export const appliedFile: string = join(containerRunDirectory, 'applied.json');
