/** HAProxy began or stopped using a server. */
export interface ServerStateChange {
  readonly isUp: boolean;
  readonly backend: string;
  readonly server: string;
  /** HAProxy's words, for example `Layer7 wrong status, code: 503`; empty if it gave none. */
  readonly reason: string;
}

/** `Server BACKEND/NAME is DOWN, reason: REASON, check duration: 1ms. 1 active and ...`; `Backup Server` where it drains. */
const change = /^(?:Backup )?Server (?<backend>[^\s/]+)\/(?<server>\S+) is (?<state>UP|DOWN)(?<rest>.*)$/;

/** The server state change in a line of HAProxy's log; undefined for none. */
export function parseServerState(line: string): ServerStateChange | undefined {
  const { backend, server, state, rest = '' } = change.exec(line.trim())?.groups ?? {};
  if (backend === undefined || server === undefined) return undefined;
  const reason = /, reason: (?<reason>.*?)(?:, check duration: [^.]*)?\. \d+ active /.exec(rest)?.groups?.['reason'];
  return { backend, server, isUp: state === 'UP', reason: reason ?? '' };
}

/** HAProxy's errors on one line: its ALERT lines, or else the end of its output. */
export function errorsIn(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.trim());
  const alerts = lines.filter((line) => line.startsWith('[ALERT]'));
  const texts = (alerts.length > 0 ? alerts : lines.filter((line) => line !== '').slice(-3)).map((line) =>
    line.replace(/^\[\w+\]\s*(?:\(\d+\))?\s*:\s*/, ''),
  );
  return texts.join(' | ').slice(0, 1000);
}
