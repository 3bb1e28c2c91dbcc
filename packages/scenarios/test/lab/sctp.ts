import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type IpAddress, type IpFamily, ipFamilies, ipFamilyOf, millis, systemClock } from '@switchyard/core';
import type { LabHost, ProbeResult } from '@switchyard/lab';

// Node has no SCTP and no raw sockets, and many kernels have no SCTP. Perl is on every Debian machine.
const program = fileURLToPath(new URL('sctp.pl', import.meta.url));

/** Answers SCTP on all ports of a host, both families, under a name. Resolves when it does. */
export async function startSctpServers(host: LabHost, name: string, signal: AbortSignal): Promise<void> {
  const servers = ipFamilies.map((family) => host.spawn('perl', [program, 'serve', family, name], { logName: 'sctp' }));
  const until = systemClock.monotonic() + 10_000;
  for (const { logFile } of servers) {
    for (let log = ''; !log.includes('ready'); log = await readFile(logFile, 'utf8')) {
      if (systemClock.monotonic() > until) throw new Error(`no SCTP server in ${host.name}: ${log}`);
      await systemClock.sleep(millis(20), signal);
    }
  }
}

/** Where SCTP attempts go. */
export interface SctpRequest {
  readonly source: string;
  readonly address: IpAddress;
  readonly port: number;
}

/** Attempts side by side, in the terms of a prober. */
export async function probeSctp(host: LabHost, request: SctpRequest, count: number): Promise<readonly ProbeResult[]> {
  const { source, address, port } = request;
  const family: IpFamily = ipFamilyOf(address);
  const args = [program, 'send', family, source, address, String(port), String(count)];
  const { stdout, stderr } = await host.run('perl', args, { timeout: millis(20_000) });
  const lines = stdout.split('\n').filter((line) => line !== '');
  if (lines.length !== count) throw new Error(`${count} SCTP attempts gave ${lines.length} lines: ${stdout}${stderr}`);
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
