import { workspaces } from '../workspace.ts';
import { sourceFiles, type SourceFile } from './source-files.ts';

interface Rule {
  readonly name: string;
  readonly pattern: RegExp;
  /** `code` keeps the contents of strings; the default, `bare`, does not. */
  readonly within?: 'code' | 'bare';
  readonly why: string;
  /** Path prefixes where the pattern is allowed. */
  readonly except: readonly string[];
}

const edges = [
  'packages/host/src/',
  'packages/lab/src/',
  'packages/rollout/src/',
  'packages/core/src/base/time.ts',
  'apps/node-agent/src/program.ts',
  'examples/backend-json-file/src/main.ts',
  'apps/node-agent/src/config.ts',
  'apps/conformance/src/config.ts',
  'apps/kind-lb-controller/src/main.ts',
  'apps/kubectl-plugin/src/main.ts',
  'apps/kind-lb-controller/src/config/',
  'e2e/src/main.ts',
];

/** Where a mode's name is data, each with the reason. Everything else asks traits or the agent's registry. */
const modeNames = [
  'packages/backend-', // the backends themselves
  'packages/netfilter/', // names of programs and error codes of netfilter, not of modes
  'packages/lab/src/agent-program.ts', // what the agent's command line takes; the lab imports no backend
  'apps/node-agent/src/config/', // kube-proxy's default mode; which modes read a field; values of fields
  'apps/node-agent/src/host/set-up-host.ts', // a section of the configuration
  'apps/node-agent/src/backends.ts', // the registry
  'examples/backend-json-file/src/traits.ts', // a mode of kube-proxy
  'apps/conformance/src/lab/proxy-program.ts', // names of --backend with the agent's flags for each
];

const rules: readonly Rule[] = [
  {
    name: 'no-ambient-time',
    // A socket's own time-out knows what the kernel has taken; no Clock does.
    pattern: /\bDate\.now\b|\bnew Date\(\)|(?<!\bsocket\.)\b(?:setTimeout|setInterval)\(|\bperformance\.now\b/,
    why: 'time comes from an injected Clock',
    except: edges,
  },
  {
    name: 'no-ambient-random',
    pattern: /\bMath\.random\b/,
    why: 'randomness comes from an injected Random',
    except: edges,
  },
  { name: 'no-ambient-env', pattern: /\bprocess\.env\b/, why: 'configuration is read in config.ts', except: edges },
  {
    name: 'no-plain-error',
    pattern: /\bthrow new (?:Error|TypeError|RangeError)\(/,
    why: 'errors say whose fault they are: core/src/base/errors.ts',
    except: ['packages/lab/src/', 'packages/rollout/src/'],
  },
  {
    name: 'no-mode-names',
    pattern: /'(?:nftables|iptables|ebpf)(?:-(?:nft|legacy|tc|nftables))?'/,
    within: 'code',
    why: 'ask the DataplaneTraits of a backend, not its name',
    except: modeNames,
  },
  {
    name: 'no-policy-in-backends',
    pattern: /(?:===|!==|\bcase)\s*['"](?:Local|Cluster)['"]|\.(?:terminating|policies)\b/,
    within: 'code',
    why: 'policy is decided in core; a backend renders the decision',
    except: [
      'packages/core/',
      'packages/loss/',
      'packages/host/',
      'packages/lab/',
      'packages/rollout/',
      'packages/scenarios/',
      'apps/',
    ],
  },
];

/** Every use of a name that is not allowed where it stands, as `file:line: rule: why`. Tests are exempt. */
export function findHouseRuleFaults(): readonly string[] {
  return workspaces()
    .flatMap((workspace) => sourceFiles(`${workspace.folder}/src`))
    .filter((file) => !/\.(test|bench)\.ts$/.test(file.path) && !file.path.includes('/testing/'))
    .flatMap(faultsIn);
}

/** Exported for tests. */
export function faultsIn(file: SourceFile): readonly string[] {
  return rules
    .filter((rule) => !rule.except.some((prefix) => file.path.startsWith(prefix)))
    .flatMap((rule) => {
      const match = rule.pattern.exec(file[rule.within ?? 'bare']);
      if (match === null) return [];
      const line = file.bare.slice(0, match.index).split('\n').length;
      return [`${file.path}:${line}: ${rule.name}: '${match[0]}': ${rule.why}`];
    });
}
