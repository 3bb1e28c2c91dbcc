/** Absolute paths of the files that HAProxy shares with the controller. */
export interface HaproxyBaseInput {
  /** The stats socket, which also hands listening sockets over at a reload. */
  readonly adminSocket: string;
  /** From which a reload learns which servers are DOWN. */
  readonly serverState: string;
}

/**
 * The constant part of HAProxy's configuration. With it alone HAProxy runs and serves nothing, so a container can start before its
 * spec is known.
 */
export function renderBase({ adminSocket, serverState }: HaproxyBaseInput): string {
  return [
    '# The base of every configuration of switchyard-lb.',
    'global',
    '    log stdout format raw local0 info',
    // The worker in a container is of HAProxy's group, and has no right to override permissions.
    `    stats socket ${adminSocket} mode 660 level admin expose-fd listeners`,
    `    server-state-file ${serverState}`,
    // Container engines allow a billion files, for each of which HAProxy would reserve memory.
    '    fd-hard-limit 50000',
    // An old worker lives as long as its connections. Some never end: without a limit, every reload would leave another process behind.
    '    mworker-max-reloads 50',
    '',
  ].join('\n');
}
