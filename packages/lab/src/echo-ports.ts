/** Ports of echo servers. */
export interface EchoPorts {
  readonly http: readonly number[];
  readonly tcp: readonly number[];
  readonly udp: readonly number[];
}
