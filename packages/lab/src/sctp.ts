import { readFile } from 'node:fs/promises';
import {
  HostError,
  type IpAddress,
  type IpFamily,
  ipFamilies,
  ipFamilyOf,
  millis,
  systemClock,
} from '@switchyard/core';
import type { LabHost } from './lab.ts';
import type { ProbeResult } from './probe-types.ts';
import { sctpProgram } from './sctp-program.ts';

/** Starts SCTP servers on all ports of a host in both families; they answer with `name`. Resolves when they are ready. */
export async function startSctpServers(host: LabHost, name: string, signal: AbortSignal): Promise<void> {
  const servers = ipFamilies.map((family) =>
    host.spawn('perl', ['-e', sctpProgram, 'serve', family, name], { logName: 'sctp' }),
  );
  const until = systemClock.monotonic() + 10_000;
  for (const { logFile } of servers) {
    for (let log = ''; !log.includes('ready'); log = await readFile(logFile, 'utf8')) {
      if (systemClock.monotonic() > until)
        throw new HostError('lab.sctp', `no SCTP server in ${host.name} within 10 s; it said: ${log}`);
      await systemClock.sleep(millis(20), signal);
    }
  }
}

/** Source and destination of SCTP attempts. */
export interface SctpRequest {
  readonly source: string;
  readonly address: IpAddress;
  readonly port: number;
}

/** Makes `count` parallel attempts and returns them as probe results. */
export async function probeSctp(host: LabHost, request: SctpRequest, count: number): Promise<readonly ProbeResult[]> {
  const { source, address, port } = request;
  const family: IpFamily = ipFamilyOf(address);
  const args = ['-e', sctpProgram, 'send', family, source, address, String(port), String(count)];
  const { stdout, stderr } = await host.run('perl', args, { timeout: millis(20_000) });
  const lines = stdout.split('\n').filter((line) => line !== '');
  if (lines.length !== count) {
    const said = `${stdout}${stderr}`.trim();
    throw new HostError(
      'lab.sctp',
      `${count} SCTP attempts in ${host.name} gave ${lines.length} lines; perl said: ${said}`,
    );
  }
  return lines.map(resultOf);
}

function resultOf(line: string): ProbeResult {
  if (line === 'refused' || line === 'timeout') return { status: line, took: 0 };
  const [by, destinationPort, seenSource] = line.split(' ');
  if (by === 'error' || seenSource === undefined) return { status: 'unreachable', code: line, took: 0 };
  return {
    status: 'answered',
    took: 0,
    httpStatus: undefined,
    headers: {},
    body: JSON.stringify({ destinationPort: Number(destinationPort) }),
    by,
    node: undefined,
    seenSource,
    seenSourcePort: undefined,
  };
}
