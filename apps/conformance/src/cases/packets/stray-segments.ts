import { readFile } from 'node:fs/promises';
import { HostError, InvariantError, type IpFamily, ipFamilies, millis, systemClock } from '@switchyard/core';
import type { LabPod, LabProcess } from '@switchyard/lab';
import { dataplaneNamed, firstState, type ScenarioService } from '@switchyard/scenarios';
import type { TestEnvironment } from '../../model/test-environment.ts';
import type { CatalogueOptions, SequenceCase } from '../../model/case.ts';
import type { CaseRecorder } from '../../model/recorder.ts';
import { ObjectFactory, momentScenario, plainAgent } from '../sequences/support/object-factory.ts';
import { strayProgram } from './stray-program.ts';

const targetPort = 8080;

const about = {
  title:
    'a segment that belongs to no connection does not reach a client as if the endpoint had sent it to the client itself',
  why: 'kube-proxy: its iptables mode drops what connection tracking calls INVALID; else the client resets the connection',
} as const;

/** Segments that an endpoint sends outside the window of its connection; one case for each family. */
export function straySegments({ dataplane }: Pick<CatalogueOptions, 'dataplane'>): readonly SequenceCase[] {
  return ipFamilies.map((ipFamily) => {
    const id = `sequence/stray-segments/${ipFamily.toLowerCase()}`;
    return {
      kind: 'sequence',
      id,
      ...about,
      tags: ['sequence', 'tcp', 'invalid-packets'],
      families: ipFamily,
      needs: ['rawPackets'],
      notFor:
        dataplaneNamed(dataplane).invalidSegments === 'dropped'
          ? undefined
          : `not for ${dataplane}: only the iptables mode has a rule against them`,
      run: (environment, record, signal) =>
        run({ id, objects: new ObjectFactory(ipFamily, dataplane) }, { environment, record }, signal),
    };
  });
}

async function run(
  { id, objects }: { readonly id: string; readonly objects: ObjectFactory },
  { environment, record }: { readonly environment: TestEnvironment; readonly record: CaseRecorder },
  signal: AbortSignal,
): Promise<void> {
  const { lab } = environment;
  const [node1, node2] = lab?.nodes ?? [];
  if (lab === undefined || node1 === undefined || node2 === undefined) {
    throw new InvariantError(`${id} needs a lab of two nodes, and this environment says that it can send raw packets`);
  }
  await environment.reset(plainAgent, signal);
  const [client, endpoint] = [await lab.addPod(node1, 'stray-client'), await lab.addPod(node2, 'stray-server')];
  let serving: LabProcess | undefined;
  try {
    const service = await putService({ id, objects, environment }, endpoint, signal);
    serving = await serve(endpoint, objects.ipFamily, signal);
    for (const check of await checksOf(client, { service, endpoint, ipFamily: objects.ipFamily })) record.check(check);
  } finally {
    await serving?.stop(millis(0));
    await Promise.all([client, endpoint].map((pod) => lab.removePod(pod)));
  }
}

async function putService(
  {
    id,
    objects,
    environment,
  }: { readonly id: string; readonly objects: ObjectFactory; readonly environment: TestEnvironment },
  pod: LabPod,
  signal: AbortSignal,
): Promise<ScenarioService> {
  const service = objects.service();
  const ip = addressOf(pod, objects.ipFamily);
  const scenario = {
    ...momentScenario(objects, { id, ...about, isDualStack: false }, plainAgent),
    services: [service],
    endpoints: [{ ...objects.endpoint(service, 'far'), ip }],
  };
  await environment.put([{ scenario, state: firstState(scenario) }], { wait: true }, signal);
  return service;
}

function addressOf(pod: LabPod, ipFamily: IpFamily): NonNullable<LabPod['addresses'][IpFamily]> {
  const address = pod.addresses[ipFamily];
  if (address === undefined) throw new InvariantError(`the lab's ${pod.name} has no ${ipFamily} address`);
  return address;
}

async function serve(pod: LabPod, ipFamily: IpFamily, signal: AbortSignal): Promise<LabProcess> {
  const args = ['-e', strayProgram, 'serve', ipFamily, addressOf(pod, ipFamily), String(targetPort)];
  const serving = pod.spawn('perl', args, { logName: 'stray' });
  const until = systemClock.monotonic() + 10_000;
  for (let log = ''; !log.includes('ready'); log = await readFile(serving.logFile, 'utf8')) {
    if (systemClock.monotonic() > until) {
      throw new HostError('conformance.stray', `no server in ${pod.name} within 10 s; it said: ${log}`);
    }
    await systemClock.sleep(millis(20), signal);
  }
  return serving;
}

async function checksOf(
  client: LabPod,
  of: { readonly service: ScenarioService; readonly endpoint: LabPod; readonly ipFamily: IpFamily },
): Promise<readonly Parameters<CaseRecorder['check']>[0][]> {
  const { clusterIP } = of.service;
  const args = [of.ipFamily, clusterIP, '80', addressOf(of.endpoint, of.ipFamily)];
  const asked = await client.run('perl', ['-e', strayProgram, 'ask', ...args], { timeout: millis(20_000) });
  const strays = /^strays (\d+)$/m.exec(asked.stdout)?.[1];
  const what = `${client.name} to ${clusterIP}:80/TCP, whose endpoint sends segments outside the window`;
  if (strays === undefined) {
    const observed = `no connection: ${asked.stderr.trim()}`;
    return [{ id: 'the connection', what, expected: 'answered', observed, because: [] }];
  }
  const isAlive = asked.stdout.includes('alive');
  return [
    {
      id: 'segments outside the window',
      what,
      expected: 'none reaches the client',
      observed:
        strays === '0' ? 'none reaches the client' : 'some reach the client, from an address it has no connection to',
      because: [`${strays} of 4 did`],
    },
    {
      id: 'the connection',
      what: `${what}, and is asked once more`,
      expected: 'answered',
      observed: isAlive ? 'answered' : 'broken',
      because: [],
    },
  ];
}
