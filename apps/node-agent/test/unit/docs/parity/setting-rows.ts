import { type Flag, meaningOf } from '../../../../src/config/flags/flag.ts';
import { flags } from '../../../../src/config/flags/table.ts';
import { kubeProxySchema } from '../../../../src/config/schema/kube-proxy-fields.ts';
import { type ParityRow, standingOf } from './row.ts';

/** kube-proxy's flags on Linux: the same names in 1.36, 1.37 and 1.38. */
export const theirFlags: readonly string[] = `
  bind-address bind-address-hard-fail boot-id-file cleanup cluster-cidr config config-sync-period conntrack-max-per-core
  conntrack-min conntrack-tcp-be-liberal conntrack-tcp-timeout-close-wait conntrack-tcp-timeout-established
  conntrack-udp-timeout conntrack-udp-timeout-stream detect-local-mode feature-gates healthz-bind-address healthz-port
  help hostname-override init-only iptables-localhost-nodeports iptables-masquerade-bit iptables-min-sync-period
  iptables-sync-period ipvs-exclude-cidrs ipvs-min-sync-period ipvs-scheduler ipvs-strict-arp ipvs-sync-period
  ipvs-tcp-timeout ipvs-tcpfin-timeout ipvs-udp-timeout kube-api-burst kube-api-content-type kube-api-qps kubeconfig
  log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream
  logging-format machine-id-file masquerade-all master metrics-bind-address metrics-port nodeport-addresses oom-score-adj
  pod-bridge-interface pod-interface-name-prefix profiling proxy-mode show-hidden-metrics-for-version v version vmodule
  write-config-to
`
  .trim()
  .split(/\s+/);

const keywords = 'from 1.37 with the keywords `localhost` and `all`, in any combination; 1.36 refuses those';
const modeWarning = 'from 1.37 with a warning and an Event if no mode is set';
const largerStays = 'from 1.38 a larger limit stays; up to 1.37 kube-proxy lowers it, unlike the agent';
const gatesDiffer = 'the gates of a release are below';

/** Changes of a flag among the compared releases, by name. */
export const flagChanges: Readonly<Record<string, string>> = {
  'conntrack-max-per-core': largerStays,
  'feature-gates': gatesDiffer,
  'nodeport-addresses': keywords,
  'proxy-mode': modeWarning,
};

/** Changes of a field among the compared releases, by path. */
export const fieldChanges: Readonly<Record<string, string>> = {
  'conntrack.maxPerCore': largerStays,
  featureGates: gatesDiffer,
  mode: modeWarning,
  nodePortAddresses: keywords,
};

/** kube-proxy's flags in the agent's table. */
export const flagRows: readonly ParityRow[] = flags
  .filter(({ group }) => group !== 'Switchyard')
  .map((flag) => settingRow(flagText(flag), standingOf(meaningOf(flag)), flagChanges[flag.name]));

/** The fields of kube-proxy's configuration file. Their names are the same in all compared releases. */
export const fieldRows: readonly ParityRow[] = kubeProxySchema.fields.map(({ path, meaning }) =>
  settingRow(`\`${path}\``, standingOf(meaning), fieldChanges[path]),
);

function settingRow(
  what: string,
  { standing, note }: Pick<ParityRow, 'standing' | 'note'>,
  change: string | undefined,
): ParityRow {
  return { what, standing, note: [note, change ?? ''].filter((text) => text !== '').join('; ') };
}

function flagText({ name }: Flag): string {
  return name === 'v' ? '`-v`' : `\`--${name}\``;
}
