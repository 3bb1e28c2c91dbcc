import type { LabNode } from '@switchyard/lab';

/** A Service with one endpoint, as a running kube-proxy would have it in the kernel. */
export interface OldService {
  readonly clusterIp: string;
  readonly port: number;
  /** `address:port`. */
  readonly endpoint: string;
}

/**
 * Writes what kube-proxy's iptables mode leaves when it stops: its chains for one Service, by iptables-nft. The node's
 * other rules stay.
 */
export async function writeOldRules(node: LabNode, { clusterIp, port, endpoint }: OldService): Promise<void> {
  const rules = `*mangle
:KUBE-PROXY-CANARY - [0:0]
COMMIT
*filter
:KUBE-FORWARD - [0:0]
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT
COMMIT
*nat
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SVC-OLDOLDOLDOLDOLDA - [0:0]
:KUBE-SEP-OLDOLDOLDOLDOLDA - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-SERVICES -d ${clusterIp}/32 -p tcp -m tcp --dport ${port} -j KUBE-SVC-OLDOLDOLDOLDOLDA
-A KUBE-SVC-OLDOLDOLDOLDOLDA -j KUBE-SEP-OLDOLDOLDOLDOLDA
-A KUBE-SEP-OLDOLDOLDOLDOLDA -p tcp -m tcp -j DNAT --to-destination ${endpoint}
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE
COMMIT
`;
  const { exitCode, stderr } = await node.run('iptables-nft-restore', ['--noflush'], { stdin: rules });
  if (exitCode !== 0) throw new Error(`iptables-nft-restore: ${stderr}`);
}

/** Names of kube-proxy's chains on the node. */
export async function oldChains(node: LabNode): Promise<readonly string[]> {
  const { exitCode, stdout, stderr } = await node.run('iptables-nft-save', []);
  if (exitCode !== 0) throw new Error(`iptables-nft-save: ${stderr}`); // nothing read is not nothing there
  return [...stdout.matchAll(/^:(KUBE-\S+)/gm)].map(([, chain = '']) => chain);
}
