import { type IpAddress, tryParseIp } from '@switchyard/core';
import { arrayOf, type Fields, fieldsOf, parseJson, textOf, textsOf } from './json-fields.ts';

/** State of a container. `gone`: it is being removed, or is unusable. */
export type ContainerState = 'created' | 'running' | 'paused' | 'restarting' | 'stopped' | 'gone';

/** The used fields of a container. */
export interface EngineContainer {
  /** In full. */
  readonly id: string;
  readonly name: string;
  readonly state: ContainerState;
  readonly labels: Readonly<Record<string, string>>;
  /** On whichever network, IPv4 first; empty while it does not run. */
  readonly addresses: readonly IpAddress[];
  /** Names of its networks; empty with nerdctl, which does not list them. */
  readonly networks: readonly string[];
  readonly published: readonly PublishedPort[];
}

/** A port that the engine leads to a container. */
export interface PublishedPort {
  /** Inside: such as `80/tcp`. */
  readonly port: string;
  readonly hostAddress: string;
  readonly hostPort: number;
}

/** Reads `container inspect NAMES` of Docker, Podman and nerdctl. Throws `HostError` if it is no JSON. */
export function parseContainers(json: string): readonly EngineContainer[] {
  if (json.trim() === '') return [];
  return arrayOf(parseJson(json, 'container inspect')).map((one) => containerOf(fieldsOf(one)));
}

function containerOf(container: Fields): EngineContainer {
  const settings = fieldsOf(container['NetworkSettings']);
  const networks = fieldsOf(settings['Networks']);
  return {
    id: textOf(container['Id']) ?? '',
    name: (textOf(container['Name']) ?? '').replace(/^\//, ''),
    state: stateOf(fieldsOf(container['State'])),
    labels: textsOf(fieldsOf(container['Config'])['Labels']),
    addresses: Object.values(networks).flatMap((one) => addressesOf(fieldsOf(one))),
    networks: Object.keys(networks),
    published: Object.entries(fieldsOf(settings['Ports'])).flatMap(publishedOf),
  };
}

function stateOf(state: Fields): ContainerState {
  switch (textOf(state['Status'])) {
    case 'running':
      return 'running';
    case 'paused':
    case 'pausing':
      return 'paused';
    case 'restarting':
      return 'restarting';
    case 'created':
    case 'configured': // Podman's word, as is `initialized`
    case 'initialized':
      return 'created';
    case 'exited':
    case 'stopped':
    case 'stopping':
      return 'stopped';
    default:
      return 'gone'; // removing, dead, unknown
  }
}

function addressesOf(network: Fields): readonly IpAddress[] {
  const texts = [textOf(network['IPAddress']), textOf(network['GlobalIPv6Address'])];
  return texts.flatMap((text) => tryParseIp(text ?? '') ?? []);
}

function publishedOf([port, bindings]: readonly [string, unknown]): readonly PublishedPort[] {
  return arrayOf(bindings).flatMap((one) => {
    const { HostIp, HostPort } = fieldsOf(one);
    const hostPort = Number(HostPort);
    return hostPort > 0 ? [{ port, hostAddress: textOf(HostIp) ?? '0.0.0.0', hostPort }] : [];
  });
}
