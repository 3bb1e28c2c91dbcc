import type { ChildProcess } from 'node:child_process';
import type { IpAddress, IpFamily, Millis, NodeName } from '@switchyard/core';

/** Text per IP family; a family that the lab does not have is absent. */
export type PerFamily<T> = Readonly<Partial<Record<IpFamily, T>>>;

/** Options of one command in a lab host. */
export interface LabCommandOptions {
  readonly stdin?: string;
  /** Default 30 s. A command that takes longer is killed and the call rejects. */
  readonly timeout?: Millis;
  readonly env?: Readonly<Record<string, string>>;
}

/** Result of a command in a lab host. The exit code of a signal is 128 plus its number, as in a shell. */
export interface LabCommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of a long-lived program in a lab host. */
export interface LabSpawnOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Opens a Node IPC channel on `LabProcess.child` (`send`, `message`). For Node programs only. Default false. */
  readonly ipc?: boolean;
  /** Name of the log file without suffix; default the program's base name. */
  readonly logName?: string;
}

/** A network namespace of the lab that stands for a machine. */
export interface LabHost {
  /** Short name, for example `node1`, `client`, `lb`. */
  readonly name: string;
  /** Name under /run/netns. */
  readonly namespace: string;
  readonly addresses: PerFamily<IpAddress>;
  /** Runs a program inside the namespace; a non-zero exit is a result. */
  run(file: string, args: readonly string[], options?: LabCommandOptions): Promise<LabCommandResult>;
  /**
   * Starts a long-lived program inside the namespace with the child's pid (by exec, without a wrapper process). It
   * leads its own process group and is killed when the lab is disposed. Output goes to the lab's log folder.
   */
  spawn(file: string, args: readonly string[], options?: LabSpawnOptions): LabProcess;
}

/** A program that was started in a lab host. */
export interface LabProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves with the exit code, or the signal's name, when it has ended. Never rejects. */
  readonly ended: Promise<number | string>;
  /** SIGTERM, then SIGKILL after `grace` (default 5 s). Resolves when it has ended. Idempotent. */
  stop(grace?: Millis): Promise<void>;
}

/** A LabHost that stands for a Kubernetes node. */
export interface LabNode extends LabHost {
  readonly nodeName: NodeName;
  /** `zone-a`, `zone-b` or `zone-c`, round-robin by node. */
  readonly zone: string;
  readonly podCidrs: PerFamily<string>;
  /**
   * This node's own cgroup v2 directory; everything spawned in the node or its pods is in it or below.
   * Undefined where the machine has no writable cgroup v2 (`Lab.limitations` says why).
   */
  readonly cgroupPath: string | undefined;
  /** This node's own BPF file system. Undefined where it cannot be mounted (`Lab.limitations` says why). */
  readonly bpffsPath: string | undefined;
}

/** A pod: a namespace with one address per family, routed through its node. */
export interface LabPod extends LabHost {
  readonly node: LabNode;
}

/** Options of a lab. */
export interface LabOptions {
  /** Several labs run side by side under different names; [a-z0-9]{1,8}. */
  readonly name: string;
  /** 1 to 39. */
  readonly nodes: number;
  readonly ipFamilies: readonly IpFamily[];
}

/** A small cluster in network namespaces, joined by a bridge that is not connected to the machine. */
export interface Lab extends AsyncDisposable {
  readonly name: string;
  readonly ipFamilies: readonly IpFamily[];
  readonly nodes: readonly LabNode[];
  /** Outside the cluster: 172.18.0.100 / fd00:172:18::100. It has no route to pods or service addresses. */
  readonly client: LabHost;
  /** Host of the load balancer: 172.18.0.50 / fd00:172:18::50. */
  readonly loadBalancer: LabHost;
  /** Host of the API server: 172.18.0.10 / fd00:172:18::10. */
  readonly apiServer: LabHost;
  /** For scratch files of this lab; removed with it. Logs of spawned programs are in `logs` below it. */
  readonly folder: string;
  /** For large scratch files: on disk, while `folder` may lie in memory. Created by its users; removed with the lab. */
  readonly diskFolder: string;
  /** Features that this machine lacks, one sentence each. Empty on a fully equipped machine. */
  readonly limitations: readonly string[];
  /** The client, the load balancer, the API server's host, and the nodes, in this order. */
  readonly hosts: readonly LabHost[];
  /** A pod without a workload: only the namespace and its routes. `address` defaults to the next free one. */
  addPod(node: LabNode, name: string, address?: PerFamily<IpAddress>): Promise<LabPod>;
  /** Kills what still runs in the pod and removes its namespace and routes. Removing it twice is fine. */
  removePod(pod: LabPod): Promise<void>;
  /** Routes packets from the client and the load-balancer host for `addresses` to `node` (load-balancer and external IPs). */
  routeToNode(addresses: readonly IpAddress[], node: LabNode): Promise<void>;
}
