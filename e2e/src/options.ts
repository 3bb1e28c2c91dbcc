import { parseArgs } from 'node:util';
import { ConfigError, messageOf } from '@switchyard/core';

/** A command line of `./dev e2e`, checked. */
export interface E2eOptions {
  readonly kind: 'help' | 'list' | 'run' | 'up' | 'down' | 'docs' | 'clean';
  /** Globs of cells; empty means all, for `list`, and for `run` with `--all`. */
  readonly cells: readonly string[];
  readonly isJson: boolean;
  readonly isDry: boolean;
  readonly isKept: boolean;
  /** Our images are built on a base made of Debian packages, without a registry. */
  readonly isLocalBase: boolean;
  /** Our images are in the engine already. */
  readonly isBuilt: boolean;
  /** Upstream's e2e tests run too. */
  readonly hasUpstream: boolean;
  /** Upstream's tests run with kube-proxy too, and a test that fails with it does not fail the cell. */
  readonly hasBaseline: boolean;
  /** Image instead of the matrix's; undefined: that. */
  readonly nodeImage: string | undefined;
  /** Image with `ginkgo` and `e2e.test`; undefined: registry.k8s.io's of the release. */
  readonly upstreamImage: string | undefined;
  readonly jobs: number;
  /** File; undefined: that of the checkout. */
  readonly matrix: string | undefined;
  /** Folder; undefined: `e2e/.results`. */
  readonly results: string | undefined;
}

/** Text of `--help`. */
export const usage: string = `usage: ./dev e2e CELL...      run cells; names may hold *, such as 'nftables-*-1.37-*' or 'lab-*-dual'
       ./dev e2e --all        run all cells that can run here
       ./dev e2e up CELL...   make their clusters with our agent, run no test, and leave them for work; prints the kubeconfig
       ./dev e2e down CELL... remove these clusters, and what killed runs left
       ./dev e2e docs CELL    run the commands of docs/operate/kind.md, docs/operate/migrate.md and deploy/README.md on clusters of a cell
       ./dev e2e --list       say of each cell whether it can run here, and why not (--json for programs)
       ./dev e2e --clean      remove what e2e runs left on this machine: clusters, kept ones too, and containers

  --dry-run        print the commands, and run none
  --keep           leave the cluster of a cell when it ends
  --node-image NAME      make nodes of this image: the engine's, else a registry's; all cells have one Kubernetes version then
  --upstream-image NAME  take upstream's tests from this image (/usr/local/bin/ginkgo and e2e.test)
  --no-upstream    without the e2e tests of Kubernetes itself
  --baseline       run those with kube-proxy before, in a cluster of its own: what fails with both is no failure of ours
  --jobs N         how many of those run side by side (4)
  --local-base     make our images on a base of Debian packages: needs no registry
  --no-build       take our images as the engine has them
  --results DIR    where cells leave their reports and diagnostics (e2e/.results)
  --matrix FILE    another matrix than e2e/matrix.json

Exit status: 0 all passed, or were skipped for a reason that is told; 1 a test failed; 2 a wrong command line; 3 a cluster failed, or a cell
that was named cannot run here. docs/test/e2e.md has the rest.`;

/** Reads arguments. Throws `ConfigError` with what to type instead. */
export function parseOptions(args: readonly string[]): E2eOptions {
  const { values, positionals } = parse(args);
  const kinds = (['help', 'list', 'clean'] as const).filter((name) => values[name]);
  if (kinds.length > 1) throw wrong(`--${kinds.join(' and --')} exclude each other`);
  const [verb] = positionals;
  const isVerb = kinds.length === 0 && (verb === 'up' || verb === 'down' || verb === 'docs');
  const kind = isVerb ? verb : (kinds[0] ?? 'run');
  const cells = isVerb ? positionals.slice(1) : positionals;
  if (isVerb && (cells.length === 0 || values.all)) throw wrong(`./dev e2e ${verb} takes names of cells`);
  if (values.all && positionals.length > 0) throw wrong(`--all, or names of cells: not both`);
  if (kind === 'run' && !values.all && positionals.length === 0)
    throw wrong('which cells? Names, or --all; --list shows them');
  if (kind === 'clean' && positionals.length > 0) throw wrong('--clean removes everything and takes no names');
  if (values.baseline && (values['no-upstream'] || isVerb)) throw wrong("--baseline needs upstream's tests");
  if (values.json && kind !== 'list') throw wrong('--json is for --list');
  const jobs = Number(values.jobs);
  if (!Number.isInteger(jobs) || jobs < 1 || jobs > 64)
    throw wrong(`--jobs is a number from 1 to 64, not '${values.jobs}'`);
  return {
    kind,
    cells,
    isJson: values.json,
    isDry: values['dry-run'],
    isKept: values.keep,
    isLocalBase: values['local-base'],
    isBuilt: values['no-build'],
    hasUpstream: !values['no-upstream'] && kind !== 'up' && kind !== 'docs',
    hasBaseline: values.baseline,
    nodeImage: values['node-image'],
    upstreamImage: values['upstream-image'],
    jobs,
    matrix: values.matrix,
    results: values.results,
  };
}

function parse(args: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { ...flag, short: 'h' },
        list: flag,
        clean: flag,
        all: flag,
        json: flag,
        'dry-run': flag,
        keep: flag,
        'local-base': flag,
        'no-build': flag,
        'no-upstream': flag,
        baseline: flag,
        'node-image': { type: 'string' },
        'upstream-image': { type: 'string' },
        jobs: { type: 'string', default: '4' },
        matrix: { type: 'string' },
        results: { type: 'string' },
      },
    });
  } catch (error) {
    throw wrong(messageOf(error));
  }
}

function wrong(what: string): ConfigError {
  return new ConfigError('e2e.usage', `${what}; ./dev e2e --help shows what there is`);
}
