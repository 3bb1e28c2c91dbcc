import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError, DataplaneError, millis } from '@switchyard/core';
import { listLabs } from '@switchyard/lab';
import { checkWritable, type DemoConfig, readConfig, usage } from './config.ts';
import { explainFrom, labSettings } from './explain-at.ts';
import { LiveLines } from './live-lines.ts';
import { packetLossTexts } from './report/packet-losses.ts';
import { type ReportedRun, reportHtml, resultRows, textTable } from './report/report-html.ts';
import type { RolloutProgress } from './rollout/rollout-setup.ts';
import { runRollout } from './rollout/run-rollout.ts';
import { summarise } from './summarise.ts';

const explainAt = explainFrom(labSettings);

async function demo(config: DemoConfig, signal: AbortSignal): Promise<void> {
  const runs: ReportedRun[] = [];
  for (const fallback of config.fallbacks) {
    const settings = { ...config.settings, terminatingFallback: fallback === 'on' };
    console.log(
      `\n== terminating fallback ${fallback}${fallback === 'off' ? ': what Kubernetes <= 1.25 did' : ' (KEP-1669)'}`,
    );
    const run = await runRollout({ labName: await freeLabName(`demo${fallback}`), settings }, liveProgress(), signal);
    runs.push({ run, summary: summarise(run, explainAt) });
  }
  const summaries = runs.map(({ summary }) => summary);
  console.log(`\n${textTable(resultRows(summaries))}\n`);
  for (const { run, summary } of runs) {
    const { firstLoss, terminatingFallback } = summary;
    if (firstLoss === undefined) continue;
    const fallback = `the fallback ${terminatingFallback ? 'on' : 'off'}`;
    printList(`packets that were dropped with ${fallback}:`, packetLossTexts(run, summary));
    printList(`why request ${firstLoss.sequence} was lost, the first one with ${fallback}:`, firstLoss.explanation);
  }
  writeFileSync(config.reportFile, reportHtml(runs));
  console.log(`\nreport: ${resolve(config.reportFile)}`);
  if (config.jsonFile === undefined) return;
  // Each run's summary first, then its record, with times in wall-clock milliseconds.
  const data = { runs: runs.map(({ run, summary }) => ({ ...summary, settings: run.settings, record: run })) };
  writeFileSync(config.jsonFile, `${JSON.stringify(data, null, 2)}\n`);
  console.log(`data:   ${resolve(config.jsonFile)}`);
}

function printList(title: string, lines: readonly string[]): void {
  if (lines.length > 0) console.log([title, ...lines.map((line) => `  - ${line}`)].join('\n'));
}

/** Demos may run side by side. What a killed one left under the first free name is removed by building there. */
async function freeLabName(name: string): Promise<string> {
  const running = new Set((await listLabs()).flatMap((lab) => (lab.status === 'running' ? [lab.name] : [])));
  const names = [name, ...Array.from({ length: 8 }, (_, index) => `${name}${index + 2}`)];
  return names.find((one) => !running.has(one)) ?? name;
}

/** Prints steps and responses as they come. */
function liveProgress(): RolloutProgress {
  let live: LiveLines | undefined;
  return {
    step: (text) => console.log(`-- ${text}`),
    loadStarted: (startedAt, oldPod) => {
      console.log('   each symbol is one request: o old pod, N new pod, x lost');
      live = new LiveLines({ startedAt, period: millis(1000), oldPod });
    },
    request: (request) => {
      for (const line of live?.add(request) ?? []) console.log(line.text);
    },
    loadEnded: () => {
      for (const line of live?.finish() ?? []) console.log(line.text);
    },
  };
}

async function main(): Promise<void> {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
  try {
    const config = readConfig(process.argv.slice(2));
    if (config === 'help') return console.log(usage);
    if (process.getuid?.() !== 0)
      throw new ConfigError('demo.root', 'the demo makes network namespaces and needs root; run: sudo ./dev demo');
    for (const file of [config.reportFile, config.jsonFile]) if (file !== undefined) checkWritable(file, 'demo.output');
    await demo(config, stop.signal);
  } catch (error) {
    console.error(
      `demo: ${error instanceof DataplaneError || stop.signal.aborted ? (error as Error).message : (error as Error).stack}`,
    );
    process.exitCode = 1;
  }
}

await main();
