import { dataplaneNames } from '@switchyard/scenarios';
import { ConfigError } from '@switchyard/core';
import * as v from 'valibot';
import type { ReportFile } from '../model/report-file.ts';

// Schema of a report file. Unknown fields are ignored: a newer minor version may have more.

const schemaName = 'switchyard-conformance/2';

const check = v.object({
  id: v.string(),
  what: v.string(),
  expected: v.string(),
  observed: v.string(),
  isAsExpected: v.boolean(),
  because: v.array(v.string()),
  path: v.array(v.object({ run: v.picklist(['table', 'packets']), lines: v.array(v.string()) })),
});

const rollout = v.object({
  title: v.string(),
  requests: v.number(),
  lost: v.number(),
  predictedLost: v.object({ least: v.number(), most: v.number() }),
  lostByCause: v.record(v.string(), v.number()),
  outcomes: v.array(v.tuple([v.number(), v.string()])),
  events: v.array(v.object({ at: v.number(), lane: v.string(), text: v.string() })),
  svg: v.optional(v.string()),
});

const timestamp = v.pipe(
  v.string(),
  v.check((text) => !Number.isNaN(Date.parse(text)), 'must be a time such as 2026-01-31T12:00:00.000Z'),
);

const result = v.object({
  id: v.pipe(v.string(), v.minLength(1, 'must not be empty')),
  title: v.string(),
  why: v.string(),
  tags: v.array(v.string()),
  families: v.picklist(['IPv4', 'IPv6', 'dual']),
  status: v.picklist(['passed', 'failed', 'skipped', 'error']),
  because: v.optional(v.string()),
  startedAt: timestamp,
  duration: v.number(),
  checks: v.array(check),
  rollouts: v.array(rollout),
  inconclusive: v.optional(v.array(v.object({ id: v.string(), what: v.string(), because: v.string() }))),
  skippedSteps: v.optional(v.array(v.object({ id: v.string(), because: v.string() }))),
});

const run = v.object({
  target: v.picklist(['lab', 'cluster']),
  proxy: v.object({
    name: v.string(),
    dataplane: v.picklist(dataplaneNames),
    command: v.optional(v.string()),
  }),
  cell: v.picklist(['ipv4', 'ipv6', 'dual']),
  kernel: v.string(),
  seed: v.number(),
  round: v.pipe(v.number(), v.integer(), v.minValue(1)),
  startedAt: timestamp,
  duration: v.number(),
  cases: v.array(result),
});

const report = v.object({ schema: v.literal(schemaName), version: v.string(), runs: v.array(run) });

/** Number of errors per file in a message. */
const faultsTold = 5;

/**
 * The report that a file holds. `name` is for messages. Throws `ConfigError` that says where in the file what is wrong, also for
 * a report of another schema.
 */
export function readReport(name: string, text: string): ReportFile {
  const json = parseJson(name, text);
  const found = (json as { readonly schema?: unknown } | null)?.schema;
  if (found !== schemaName) {
    const what = found === undefined ? 'has no "schema"' : `has the schema ${JSON.stringify(found)}`;
    throw new ConfigError(
      'report.schema',
      `reading ${name}: the file ${what}, and this tool reads ${schemaName}; give a file that \`run --json FILE\` wrote, ` +
        'or use the version of the tool that wrote this one',
    );
  }
  const parsed = v.safeParse(report, json);
  if (parsed.success) {
    // The schema omits keys whose value in the model is undefined; both read the same.
    return parsed.output as unknown as ReportFile;
  }
  const faults = parsed.issues.map((issue) => `${v.getDotPath(issue) ?? 'the file'}: ${issue.message}`);
  const told = faults.slice(0, faultsTold).map((fault) => `\n  ${fault}`);
  const more = faults.length > faultsTold ? `\n  and ${faults.length - faultsTold} more` : '';
  throw new ConfigError('report.invalid', `reading ${name}: not a report of ${schemaName}:${told.join('')}${more}`);
}

function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ConfigError(
      'report.json',
      `reading ${name}: not JSON (${(cause as Error).message}); a run that was killed leaves none`,
      { cause },
    );
  }
}

/** The text of a report file. */
export function writeReport(written: ReportFile): string {
  return `${JSON.stringify(written, undefined, 1)}\n`;
}
