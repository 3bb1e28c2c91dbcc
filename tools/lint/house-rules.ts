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
  'packages/core/src/time.ts',
  'apps/node-agent/src/main.ts',
  'apps/node-agent/src/config.ts',
  'apps/conformance/src/config.ts',
  'apps/kind-lb-controller/src/main.ts',
  'apps/kind-lb-controller/src/config/',
  'e2e/src/main.ts',
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
    why: 'errors say whose fault they are: core/src/errors.ts',
    except: ['packages/lab/src/', 'packages/rollout/src/'],
  },
  {
    name: 'no-policy-in-backends',
    pattern: /(?:===|!==|\bcase)\s*['"](?:Local|Cluster)['"]|\.(?:terminating|policies)\b/,
    within: 'code',
    why: 'policy is decided in core; a backend renders the decision',
    except: ['packages/core/', 'packages/host/', 'packages/lab/', 'packages/rollout/', 'packages/scenarios/', 'apps/'],
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
