import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ipFamilies, type IpFamily } from '@switchyard/core';
import { createLab, type Lab, type LabNode, type LabPod } from '@switchyard/lab';
import { type BpfObject, linkCgroup, loadBpfObject, netnsCookie } from '@switchyard/native';
import { hooksOf } from '../../src/kernel/kernel.ts';
import { sourceClassIndex } from '../../src/render/layouts.ts';
import { SocketDriver } from './socket-driver.ts';
import { guardFields, WrittenMaps } from './written-maps.ts';

/** Where `tools/build-bpf.ts` put an object file. */
export function objectFile(name: 'socket' | 'pick'): string {
  return fileURLToPath(new URL(`../../build/${name}.bpf.o`, import.meta.url));
}

/** One family's programs. */
export interface Instance {
  readonly object: BpfObject;
  readonly maps: WrittenMaps;
}

/** Loads the socket programs of a family and attaches them to a cgroup, until they are disposed. */
export function attachSockets(
  stack: DisposableStack,
  family: IpFamily,
  options: { readonly cgroup: string; readonly isHostOnly?: boolean },
): Instance {
  const constants = { family: family === 'IPv4' ? 4 : 6, socket_scope: options.isHostOnly === true ? 1 : 0 };
  const object = stack.use(loadBpfObject(objectFile('socket'), { constants }));
  for (const hook of hooksOf[family]) {
    const program = object.programs.get(hook);
    if (program === undefined) throw new Error(`the object has no program ${hook}`);
    stack.use(linkCgroup(program, options.cgroup, hook));
  }
  return { object, maps: new WrittenMaps(object.maps) };
}

/** Service addresses as an application may write them. */
export const serviceCidrs: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.0/16', IPv6: 'fd00:10:96::/112' };

/** A node with three pods, the programs of both families on its cgroup, and a driver in each place. */
export class SocketSite implements AsyncDisposable {
  readonly lab: Lab;
  readonly node: LabNode;
  readonly cgroup: string;
  readonly instances: Readonly<Record<IpFamily, Instance>>;
  /** Who serves (a, b) and who asks. */
  readonly drivers: Readonly<Record<'a' | 'b' | 'pod' | 'node' | 'insideA', SocketDriver>>;
  readonly #pods: Readonly<Record<'a' | 'b' | 'pod', LabPod>>;
  readonly #stack: DisposableStack;

  private constructor(parts: Pick<SocketSite, 'lab' | 'node' | 'cgroup' | 'instances' | 'drivers'>, rest: Rest) {
    this.lab = parts.lab;
    this.node = parts.node;
    this.cgroup = parts.cgroup;
    this.instances = parts.instances;
    this.drivers = parts.drivers;
    this.#pods = rest.pods;
    this.#stack = rest.stack;
  }

  static async create(name: string, signal: AbortSignal): Promise<SocketSite> {
    const lab = await createLab({ name, nodes: 1, ipFamilies }, signal);
    const [node] = lab.nodes;
    if (node?.cgroupPath === undefined) throw new Error(`no cgroup for the node: ${lab.limitations.join(' ')}`);
    const [a, b, pod] = await Promise.all(['a', 'b', 'pod'].map((podName) => lab.addPod(node, podName)));
    if (a === undefined || b === undefined || pod === undefined) throw new Error('a pod is missing');
    const stack = new DisposableStack();
    const attach = (family: IpFamily): Instance => {
      const instance = attachSockets(stack, family, { cgroup: node.cgroupPath ?? '' });
      instance.maps.configure(configurationOf(node, family));
      return instance;
    };
    const instances = { IPv4: attach('IPv4'), IPv6: attach('IPv6') };
    const started = await Promise.all([a, b, pod, node, a].map((host) => SocketDriver.start(lab, host)));
    const drivers = { a: started[0]!, b: started[1]!, pod: started[2]!, node: started[3]!, insideA: started[4]! };
    const site = new SocketSite(
      { lab, node, cgroup: node.cgroupPath, instances, drivers },
      { pods: { a, b, pod }, stack },
    );
    await Promise.all([site.#serve('a'), site.#serve('b')]);
    return site;
  }

  /** A serving pod's address. */
  address(pod: 'a' | 'b', family: IpFamily): string {
    return this.#pods[pod].addresses[family] ?? '';
  }

  /** Names of the namespaces of all pods, under /run/netns. */
  get podNamespaces(): readonly string[] {
    return Object.values(this.#pods).map(({ namespace }) => namespace);
  }

  /** Puts a driver into a cgroup of its own below a folder; the lab removes it. */
  async move(driver: SocketDriver, folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/cgroup.procs`, String(driver.pid));
  }

  /** Listens on 8080 of both families and protocols. */
  async #serve(pod: 'a' | 'b'): Promise<void> {
    for (const family of ipFamilies) {
      for (const protocol of ['tcp', 'udp']) {
        await this.drivers[pod].ask(
          `listen ${family}-${protocol} ${protocol} ${this.address(pod, family)} 8080 ${pod}`,
        );
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stack.dispose();
    await this.lab[Symbol.asyncDispose]();
  }
}

interface Rest {
  readonly pods: Readonly<Record<'a' | 'b' | 'pod', LabPod>>;
  readonly stack: DisposableStack;
}

/** Sockets of the node's own namespace are `node`, others `pod`; cluster IPs are guarded. */
export function configurationOf(node: LabNode, family: IpFamily): Readonly<Record<string, number | bigint | string>> {
  return {
    host_netns: netnsCookie(`/run/netns/${node.namespace}`),
    pod_class: sourceClassIndex.pod,
    guards: 1,
    udp_sticky_seconds: 60,
    ...guardFields(0, serviceCidrs[family]),
  };
}
