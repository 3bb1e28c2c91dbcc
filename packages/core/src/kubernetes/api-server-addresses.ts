import type { ApiServerAddress } from '../model/forwarding/build-table-types.ts';
import { tryParseIp } from '../model/ip/address.ts';
import { parsePort, type Port } from '../model/ip/port.ts';
import { portOf } from './api-request.ts';
import { requireUrl } from './check-arguments.ts';

/** Limit of remembered addresses; the oldest are removed first. */
const maxAddresses = 16;

/**
 * Destination addresses of connections to an API server: the URL's own, or those to which its name resolved. Each is known
 * before the first packet to it is sent.
 */
export class ApiServerAddresses {
  readonly #port: Port;
  #known: readonly ApiServerAddress[] = [];
  #onChange: () => void = () => undefined;

  /** Throws `UsageError` for anything but an http or https URL. */
  constructor(url: URL) {
    requireUrl('ApiServerAddresses: url', url);
    this.#port = parsePort(portOf(url));
    this.note(url.hostname.replace(/^\[|\]$/g, ''));
  }

  /** The same array until something changes. */
  get current(): readonly ApiServerAddress[] {
    return this.#known;
  }

  /** Calls `listener` after each change. One listener. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** Adds the destination address of a connection; ignores a name or any other text. */
  note(text: string): void {
    const address = tryParseIp(text);
    if (address === undefined || this.#known.some((one) => one.address === address)) return;
    this.#known = [...this.#known, { address, port: this.#port }].slice(-maxAddresses);
    this.#onChange();
  }
}
