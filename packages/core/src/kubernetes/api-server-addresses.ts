import type { ApiServerAddress } from '../model/forwarding/build-table-types.ts';
import { tryParseIp } from '../model/ip/address.ts';
import { parsePort, type Port } from '../model/ip/port.ts';
import { portOf } from './api-request.ts';

/** More addresses than this of one name are forgotten, the oldest first. */
const maxAddresses = 16;

/**
 * Addresses at which connections to an API server go: the URL's own, or those to which its name was resolved for a
 * connection. An address is known before the first packet goes there, so that nothing needs to be reached to learn it.
 */
export class ApiServerAddresses {
  readonly #port: Port;
  #known: readonly ApiServerAddress[] = [];
  #onChange: () => void = () => undefined;

  constructor(url: URL) {
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

  /** A connection goes to this address; a name or any other text is ignored. */
  note(text: string): void {
    const address = tryParseIp(text);
    if (address === undefined || this.#known.some((one) => one.address === address)) return;
    this.#known = [...this.#known, { address, port: this.#port }].slice(-maxAddresses);
    this.#onChange();
  }
}
