import type { ChildProcess } from 'node:child_process';
import type { IpAddress, IpFamily, Millis, NodeName } from '@switchyard/core';

/** One command in a lab host, run to its end. */
export interface LabCommandOptions {
  readonly stdin?: string;
  readonly timeout?: Millis;
  readonly env?: Readonly<Record<string, string>>;
}

/** A network namespace of the lab that plays a machine. */
export interface LabHost {
  /** Short name, for example `node1`, `client`, `lb`. */
  readonly name: string;
  /** Name under /run/netns. */
  readonly namespace: string;
  readonly addresses: Readonly<Partial<Record<IpFamily, IpAddress>>>;
  /** Runs a program inside the namespace; a non-zero exit is a result. */
  run(
    file: string,
    args: readonly string[],
    options?: LabCommandOptions,
  ): Promise<{ readonly exitCode: number; readonly stdout: string; readonly stderr: string }>;
  /**
   * Starts a long-lived program inside the namespace with its pid equal to the child's pid (exec, no
   * wrapper stays). It is killed when the lab is disposed. Output goes to the lab's log folder.
   */
  spawn(
    file: string,
    args: readonly string[],
    options?: { readonly env?: Readonly<Record<string, string>> },
  ): LabProcess;
}

/** A program that was started in a lab host. */
export interface LabProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves with the exit code, or the signal's name, when it has ended. */
  readonly ended: Promise<number | string>;
  /** SIGTERM, then SIGKILL after `grace` (default 5 s). Resolves when it has ended. */
  stop(grace?: Millis): Promise<void>;
}

/** A LabHost that plays a Kubernetes node. */
export interface LabNode extends LabHost {
  readonly nodeName: NodeName;
  readonly zone: string;
  readonly podCidrs: Readonly<Partial<Record<IpFamily, string>>>;
  /** This node's own cgroup v2 directory. */
  readonly cgroupPath: string;
  /** This node's own BPF file system. */
  readonly bpffsPath: string;
}

/** A pod: a namespace with one address per family, routed through its node. */
export interface LabPod extends LabHost {
  readonly node: LabNode;
}

/** What to build. */
export interface LabOptions {
  /** Several labs run side by side under different names; [a-z0-9]{1,8}. */
  readonly name: string;
  readonly nodes: number;
  readonly ipFamilies: readonly IpFamily[];
}

/** A small cluster in network namespaces, joined by a bridge that is not connected to the machine. */
export interface Lab extends AsyncDisposable {
  readonly name: string;
  readonly ipFamilies: readonly IpFamily[];
  readonly nodes: readonly LabNode[];
  /** Outside the cluster: 172.18.0.100 / fd00:172:18::100. */
  readonly client: LabHost;
  /** Where the load balancer runs: 172.18.0.50 / fd00:172:18::50. */
  readonly loadBalancer: LabHost;
  /** For scratch files of this lab; removed with it. */
  readonly folder: string;
  /** A pod without a workload: only the namespace and its routes. `address` defaults to the next free one. */
  addPod(node: LabNode, name: string, address?: Readonly<Partial<Record<IpFamily, IpAddress>>>): Promise<LabPod>;
  removePod(pod: LabPod): Promise<void>;
  /** Adds `addresses` to the client-side network so that packets to them are routed to `node` (load-balancer and external IPs). */
  routeToNode(addresses: readonly IpAddress[], node: LabNode): Promise<void>;
}
