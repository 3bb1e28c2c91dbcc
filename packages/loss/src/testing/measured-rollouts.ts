/**
 * Observations of a load balancer, and losses: seconds after the deletionTimestamp, then requests. The model column is
 * undefined where the measured page has none.
 */
export type Side = readonly [newUp: number, oldDown: number, model: number | undefined, lost: number];
/** One measured rollout: the proxy and the run, when the old node's proxy had programmed the change (s), and what was seen, watched through a slow (5s x 3) and a fast (2s x 1) load balancer at once. */
export type Rollout = readonly [name: string, sync: number | undefined, slow: Side, fast: Side];

// Measured with the real kube-proxy 1.25 (old: without the fallback, except with the gate) and 1.36 (new) behind the
// real HAProxy, at 20 requests/s.
export const appServesHalfAMinute: readonly Rollout[] = [
  ['old-iptables, run 1', 0.16, [2.93, 11.7, 143, 143], [0.19, 1.7, 16, 16]],
  ['old-iptables, run 2', 0.17, [1.83, 13.06, 145, 147], [1.86, 0.34, 34, 34]],
  ['old-iptables, run 3', 0.15, [4.72, 13.49, 179, 179], [2.02, 1.52, 37, 38]],
  ['old-iptables-gate, run 1', 0.14, [0.85, 14.62, 0, 0], [0.22, 1.74, 0, 0]],
  ['old-iptables-gate, run 2', 0.16, [2.15, 13.38, 0, 0], [1.29, 1.78, 0, 0]],
  ['old-iptables-gate, run 3', 0.14, [1.16, 14.94, 0, 0], [1.59, 1.1, 10, 9]],
  ['new-iptables, run 1', 1.08, [4.07, 12.84, 0, 0], [1.33, 2.84, 0, 0]],
  ['new-iptables, run 2', 1.05, [0.73, 11.98, 0, 0], [0.77, 1.26, 0, 0]],
  ['new-iptables, run 3', 1.04, [0.74, 14.5, 0, 0], [0.04, 1.55, 0, 0]],
  ['new-nftables, run 1', 1.03, [3.27, 12.03, 0, 0], [1.66, 1.16, 10, 10]],
  ['new-nftables, run 2', 1.04, [3.84, 15.09, 0, 0], [1.0, 1.49, 0, 0]],
  ['new-nftables, run 3', 1.03, [1.67, 15.43, 0, 0], [1.09, 2.62, 0, 0]],
];

export const appStopsAtOnce: readonly Rollout[] = [
  ['old-iptables, run 1', undefined, [4.33, 13.09, 173, 174], [1.67, 1.18, 32, 33]],
  ['old-iptables, run 2', undefined, [2.44, 13.67, 160, 162], [1.54, 2.03, 34, 36]],
  ['old-iptables, run 3', undefined, [1.77, 10.53, 121, 123], [0.12, 1.61, 15, 17]],
  ['old-iptables-gate, run 1', undefined, [1.54, 10.31, 117, 119], [1.01, 0.54, 19, 20]],
  ['old-iptables-gate, run 2', undefined, [0.51, 11.69, 121, 123], [0.72, 1.19, 18, 19]],
  ['old-iptables-gate, run 3', undefined, [2.73, 11.52, 141, 143], [1.22, 0.75, 23, 25]],
  ['new-iptables, run 1', undefined, [2.26, 16.01, 181, 182], [0.62, 2.11, 26, 27]],
  ['new-iptables, run 2', undefined, [0.15, 11.37, 115, 115], [0.25, 2.74, 29, 30]],
  ['new-iptables, run 3', undefined, [2.15, 15.89, 179, 181], [0.52, 2.01, 24, 26]],
  ['new-nftables, run 1', undefined, [3.27, 12.02, 152, 152], [1.73, 1.24, 33, 34]],
  ['new-nftables, run 2', undefined, [3.82, 15.06, 188, 190], [2.05, 2.55, 45, 47]],
  ['new-nftables, run 3', undefined, [2.37, 11.11, 134, 135], [0.86, 2.35, 31, 34]],
];

export const appServesFiveSeconds: readonly Rollout[] = [
  ['new-iptables, run 1', 1.05, [3.46, 12.23, 72, 72], [0.72, 2.23, undefined, 0]],
  ['new-iptables, run 2', 1.07, [2.55, 13.79, 88, 89], [1.57, 2.05, undefined, 0]],
  ['new-iptables, run 3', 1.04, [1.32, 15.09, 101, 101], [1.59, 1.11, undefined, 9]],
  ['new-nftables, run 1', 1.04, [1.26, 15.03, 100, 101], [1.55, 1.09, undefined, 9]],
  ['new-nftables, run 2', 1.03, [4.5, 15.74, 107, 107], [1.58, 2.04, undefined, 0]],
  ['new-nftables, run 3', 1.02, [4.7, 13.46, 84, 84], [2.01, 1.55, undefined, 9]],
  ['new-nftables-10ms, run 1', 0.07, [1.92, 10.69, 56, 57], [1.18, 0.69, undefined, 9]],
  ['new-nftables-10ms, run 2', 0.03, [2.08, 13.31, 83, 83], [1.09, 1.63, undefined, 0]],
  ['new-nftables-10ms, run 3', 0.04, [1.36, 10.13, 51, 51], [1.7, 1.15, undefined, 11]],
  ['new-nftables-10ms, run 4', 0.04, [2.61, 13.85, 88, 88], [0.65, 1.19, undefined, 0]],
  ['new-nftables-10ms, run 5', 0.05, [2.76, 11.53, 65, 66], [1.12, 0.58, undefined, 11]],
  ['new-nftables-10ms, run 6', 0.05, [1.77, 13.01, 79, 80], [0.84, 1.38, undefined, 0]],
  ['new-nftables-10ms, run 7', 0.07, [0.31, 14.08, 90, 91], [0.69, 0.15, undefined, 11]],
  ['new-nftables-10ms, run 8', 0.04, [4.01, 10.25, 52, 52], [1.09, 1.63, undefined, 0]],
];
