import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { LabHost } from '@switchyard/lab';
import { until } from '../agent-log.ts';

const run = promisify(execFile);

/** Files that only Prometheus' web pages and its service need. */
const unneeded = [
  'adduser',
  'fonts-glyphicons-halflings',
  'init-system-helpers',
  'libc6',
  ...['', '-hotkeys'].map((suffix) => `libjs-jquery${suffix}`),
  ...[
    'bootstrap4',
    'eonasdan-bootstrap-datetimepicker',
    'moment',
    'moment-timezone',
    'mustache',
    'popper.js',
    'rickshaw',
  ].map((name) => `libjs-${name}`),
];

/** Debian's Prometheus, unpacked and not installed: the folder of its programs. */
export async function prometheusPrograms(): Promise<string> {
  const fetch = fileURLToPath(new URL('../../../../../tools/debian/fetch.ts', import.meta.url));
  const args = [fetch, ...unneeded.flatMap((name) => ['--exclude', name]), 'prometheus'];
  const { stdout } = await run(process.execPath, args);
  return `${stdout.trim()}/usr/bin`;
}

/** A series as a query returns it. */
export interface QueryResult {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [time: number, value: string];
}

/** A real Prometheus that scrapes one agent every two seconds. */
export interface Prometheus {
  /** GET of its API; what stands under `data`. */
  api(path: string): Promise<unknown>;
  /** An instant query. */
  query(expr: string): Promise<readonly QueryResult[]>;
}

/** Starts Prometheus in the agent's namespace; it ends with the lab. Resolves after the first scrape. */
export async function startPrometheus(host: LabHost, options: { readonly folder: string }): Promise<Prometheus> {
  const programs = await prometheusPrograms();
  await mkdir(options.folder, { recursive: true });
  const configFile = `${options.folder}/prometheus.yml`;
  await writeFile(
    configFile,
    [
      'global: { scrape_interval: 2s, scrape_timeout: 2s }',
      'scrape_configs:',
      '  - job_name: switchyard',
      "    static_configs: [{ targets: ['127.0.0.1:10249'] }]",
      '',
    ].join('\n'),
  );
  host.spawn(
    `${programs}/prometheus`,
    [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${options.folder}/data`,
      '--web.listen-address=127.0.0.1:9090',
      '--log.level=warn',
    ],
    { logName: 'prometheus' },
  );
  const api = async (path: string): Promise<unknown> => {
    const body = await get(host, `http://127.0.0.1:9090/api/v1/${path}`);
    const answer = JSON.parse(body) as { readonly status: string; readonly data: unknown; readonly error?: string };
    if (answer.status !== 'success') throw new Error(`Prometheus: ${path}: ${answer.error}`);
    return answer.data;
  };
  const query = async (expr: string): Promise<readonly QueryResult[]> => {
    const data = await api(`query?query=${encodeURIComponent(expr)}`);
    return (data as { readonly result: readonly QueryResult[] }).result;
  };
  await until(async () => {
    const result = await query('up').catch(() => []);
    return result[0]?.value[1] === '1';
  });
  return { api, query };
}

/** The body of a GET from inside the namespace; of any status. */
export async function get(host: LabHost, url: string, accept = '*/*'): Promise<string> {
  const script =
    'const a = await fetch(process.argv[1], { headers: { accept: process.argv[2] } }); process.stdout.write(await a.text())';
  const { exitCode, stdout, stderr } = await host.run(process.execPath, [
    '--input-type=module',
    '-e',
    script,
    url,
    accept,
  ]);
  if (exitCode !== 0) throw new Error(`GET ${url}: ${stderr}`);
  return stdout;
}
