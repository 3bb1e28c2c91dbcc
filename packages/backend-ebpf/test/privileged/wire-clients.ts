import { fileURLToPath } from 'node:url';
import type { LabHost } from '@switchyard/lab';
import { MessageWriter, NLM_F, openNetlinkSocket } from '@switchyard/native';
import { expect } from 'vitest';

const program = fileURLToPath(new URL('../wire-client-program.ts', import.meta.url));

/** Runs the program; its first lines say what it can. */
export async function runClient(
  host: LabHost,
  what: 'reopen' | 'datagram' | 'bulk',
  address: string,
  port: number,
  amount: number,
): Promise<string> {
  const args = [program, what, address, port, amount].map(String);
  const { exitCode, stdout, stderr } = await host.run(process.execPath, args);
  expect(exitCode, stderr).toBe(0);
  return stdout.trim();
}

/** Forgets all connections, as `conntrack -F` does. */
export function flushConntrack(netns: string): void {
  using socket = openNetlinkSocket({ protocol: 'netfilter', netns });
  const writer = new MessageWriter();
  writer.beginMessage({ type: 0x102, flags: NLM_F.REQUEST | NLM_F.ACK, sequence: 1 }); // IPCTNL_MSG_CT_DELETE
  writer.netfilterHeader(0, 0);
  writer.endMessage();
  socket.send(writer.bytes());
  expect(socket.receive(new Uint8Array(4096))).toBeGreaterThan(0);
}
