import { describe, expect, test } from 'vitest';
import { fieldAt } from '../schema/field.ts';
import { kubeProxySchema } from '../schema/kube-proxy-fields.ts';
import { switchyardSchema } from '../schema/switchyard-fields.ts';
import { helpText, parseFlags } from './parse-flags.ts';
import { flags } from './table.ts';

describe('flags are written as for pflag', () => {
  test.each<readonly [string, readonly string[], string, unknown]>([
    ['a value after =', ['--kubeconfig=/x'], 'kubeconfig', '/x'],
    ['a value with = in it', ['--kubeconfig=/x=y'], 'kubeconfig', '/x=y'],
    ['a value in the next argument', ['--kubeconfig', '/x'], 'kubeconfig', '/x'],
    ['a value that looks like a flag', ['--kubeconfig', '--x'], 'kubeconfig', '--x'],
    ['an empty value', ['--kubeconfig='], 'kubeconfig', ''],
    ['underscores for dashes', ['--kube_api_burst=7'], 'kube-api-burst', 7],
    ['a bare switch', ['--masquerade-all'], 'masquerade-all', true],
    ['a switch with a value', ['--masquerade-all=F'], 'masquerade-all', false],
    ['the last of several', ['--oom-score-adj=1', '--oom-score-adj=2'], 'oom-score-adj', 2],
    ['lists add up', ['--nodeport-addresses=a,b', '--nodeport-addresses=c'], 'nodeport-addresses', ['a', 'b', 'c']],
    ['an empty list', ['--nodeport-addresses='], 'nodeport-addresses', []],
    [
      'gates add up',
      ['--feature-gates=A=true,B=false', '--feature-gates=B=true'],
      'feature-gates',
      new Map([
        ['A', true],
        ['B', true],
      ]),
    ],
    ['-v N', ['-v', '4'], 'v', 4],
    ['-v=N', ['-v=4'], 'v', 4],
    ['-vN', ['-v4'], 'v', 4],
    ['--v=N', ['--v=4'], 'v', 4],
    ['-h', ['-h'], 'help', true],
    ['a hexadecimal number', ['--conntrack-min=0x10'], 'conntrack-min', 16],
    ['a float', ['--kube-api-qps=2.5'], 'kube-api-qps', 2.5],
    ['rules for files', ['--vmodule=a*=3,b=1'], 'vmodule', [rule('a*', 3), rule('b', 1)]],
    ['a bare --version', ['--version'], 'version', 'true'],
  ])('%s', (_, args, name, value) => {
    expect(parseFlags(args).get(name)?.setting.value).toEqual(value);
  });

  test.each([
    [['-x'], 'unknown flag -x'],
    [['-version'], '--v "ersion": must be a whole number'], // as pflag takes it
    [['--frob', 'x', '--frob2'], 'unknown flag --frob\nunknown flag --frob2'],
    [['-'], 'unexpected argument "-"'],
    [['--config'], '--config needs a value: FILE'],
  ])('%j is refused', (args, message) => {
    expect(() => parseFlags(args)).toThrow(message);
  });
});

describe('the table of flags', () => {
  test('names are unique, and every flag with a value says what it is', () => {
    expect(new Set(flags.map(({ name }) => name)).size).toBe(flags.length);
    for (const { name, bare, value } of flags) expect([name, bare ?? value]).not.toEqual([name, undefined]);
  });

  test.each(flags.map((flag) => [flag.name, flag] as const))(
    '--%s leads to a field of its type',
    (_, { target, type }) => {
      const paths =
        target.kind === 'field' || target.kind === 'own'
          ? [target.path]
          : target.kind === 'fieldOfMode'
            ? [`nftables.${target.name}`, `iptables.${target.name}`]
            : [];
      const schema = target.kind === 'own' ? switchyardSchema : kubeProxySchema;
      expect(paths.map((path) => fieldAt(schema, path)?.type)).toEqual(paths.map(() => type));
    },
  );

  test('all flags of Switchyard are one group, and no other flag has their prefix', () => {
    const ours = flags.filter(({ group }) => group === 'Switchyard').map(({ name }) => name);
    expect(ours).toEqual(flags.map(({ name }) => name).filter((name) => name.startsWith('switchyard-')));
  });

  test('the help names them by group, in lines that fit', () => {
    const lines = helpText().split('\n');
    expect(lines).toContain('Logging:');
    expect(lines).toContain('Switchyard:');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(160);
  });
});

// The complete list of kube-proxy 1.36 on Linux.
const kubeProxyFlags = `bind-address bind-address-hard-fail boot-id-file cleanup cluster-cidr config config-sync-period
conntrack-max-per-core conntrack-min conntrack-tcp-be-liberal conntrack-tcp-timeout-close-wait
conntrack-tcp-timeout-established conntrack-udp-timeout conntrack-udp-timeout-stream detect-local-mode feature-gates
healthz-bind-address healthz-port help hostname-override init-only iptables-localhost-nodeports iptables-masquerade-bit
iptables-min-sync-period iptables-sync-period ipvs-exclude-cidrs ipvs-min-sync-period ipvs-scheduler ipvs-strict-arp
ipvs-sync-period ipvs-tcp-timeout ipvs-tcpfin-timeout ipvs-udp-timeout kube-api-burst kube-api-content-type kube-api-qps
kubeconfig log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size
log-text-split-stream logging-format machine-id-file masquerade-all master metrics-bind-address metrics-port
nodeport-addresses oom-score-adj pod-bridge-interface pod-interface-name-prefix profiling proxy-mode
show-hidden-metrics-for-version v version vmodule write-config-to`.split(/\s+/);

test.each(kubeProxyFlags)("kube-proxy's --%s is here", (name) => {
  expect(flags.map((flag) => flag.name)).toContain(name);
});

test('and nothing that is neither its nor ours', () => {
  const others = flags.map(({ name }) => name).filter((name) => !name.startsWith('switchyard-'));
  expect(others.sort()).toEqual([...kubeProxyFlags].sort());
});

function rule(filePattern: string, verbosity: number): object {
  return { filePattern, verbosity };
}
