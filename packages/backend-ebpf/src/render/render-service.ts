import {
  assertNever,
  type Cidr,
  type Decision,
  type Endpoint,
  type Frontend,
  HostError,
  type IpAddress,
  isEqual,
  type Protocol,
  type ServiceForwarding,
  sourceClasses,
} from '@switchyard/core';
import { actionBits, actions, frontendFlags, frontendScopes, masqueradeBit, sourceClassIndex } from './layouts.ts';
import { portBits, putAddress } from './address-words.ts';
import { keyWords } from './frontend-digest.ts';

/** IP numbers of the protocols that programs carry; nftables carries SCTP. */
export const protocolNumbers: Readonly<Record<Exclude<Protocol, 'SCTP'>, number>> = { TCP: 6, UDP: 17 };

/** A set has 16 bits for its length. */
export const maxEndpointsOfSet = 65_535;

/** kube-proxy's bounds of an affinity's timeout, in seconds. */
const affinityBounds = { min: 1, max: 86_400 } as const;

/** One entry of `frontends`, without the id and the cookie of its service. */
export interface RenderedFrontend {
  /** Six words: the bytes of `frontend_key`. */
  readonly key: Uint32Array;
  /** The `actions` of the value: an action for each source class, and `frontendFlags`. */
  readonly actions: number;
}

/** Map content of one Service. Contains no decision of its own. */
export interface RenderedService {
  /** Empty: the Service has no id, and the maps only have its guards. */
  readonly frontends: readonly RenderedFrontend[];
  /** Cluster IPs. Several ports may share one. */
  readonly guards: readonly IpAddress[];
  readonly clusterSet: readonly Endpoint[];
  readonly localSet: readonly Endpoint[];
  /** Allowed sources of its restricted frontends; empty with a restricted frontend: none. */
  readonly sourceRanges: readonly Cidr[];
  /** Zero: no session affinity. */
  readonly affinitySeconds: number;
}

const nothing: readonly never[] = [];

/** Renders one Service. Throws `HostError` for one that the maps cannot hold. */
export function renderService(service: ServiceForwarding): RenderedService {
  const { protocol, frontends, sessionAffinity } = service;
  const guards = frontends.filter(isClusterIp).map(({ address }) => address);
  if (protocol === 'SCTP' || frontends.length === 0) {
    const none = { frontends: nothing, clusterSet: nothing, localSet: nothing, sourceRanges: nothing };
    return { ...none, guards, affinitySeconds: 0 };
  }
  const { Cluster: clusterSet, Local: localSet } = service.endpoints;
  const largest = Math.max(clusterSet.length, localSet.length);
  if (largest > maxEndpointsOfSet) {
    throw new HostError(
      'ebpf.tooManyEndpoints',
      `cannot write ${service.key}: it has ${largest} endpoints, a set holds ${maxEndpointsOfSet}; split the Service`,
    );
  }
  return {
    frontends: frontends.map((frontend) => ({ key: keyOf(frontend, protocol), actions: actionsOf(frontend) })),
    guards,
    clusterSet,
    localSet,
    sourceRanges: rangesOf(service),
    affinitySeconds: sessionAffinity.kind === 'none' ? 0 : affinitySeconds(sessionAffinity.timeout),
  };
}

function isClusterIp(frontend: Frontend): frontend is Frontend & { readonly address: IpAddress } {
  return frontend.kind === 'clusterIP';
}

/** Key of a cluster IP's guard entry, written to `key` if given; valid until the next call then. */
export function guardKey(address: IpAddress, key: Uint32Array = new Uint32Array(keyWords)): Uint32Array {
  putAddress(key, 0, address);
  key[4] = frontendScopes.guard << 24;
  return key;
}

/** Key of a frontend, by which programs look packets up. */
export function keyOf(
  { address, port }: Pick<Frontend, 'address' | 'port'>,
  protocol: keyof typeof protocolNumbers,
): Uint32Array {
  const key = new Uint32Array(keyWords);
  const isWildcard = address === 'anyNodePortAddress';
  if (!isWildcard) putAddress(key, 0, address);
  const scope = isWildcard ? frontendScopes.nodePort : frontendScopes.address;
  key[4] = portBits(port) | (protocolNumbers[protocol] << 16) | (scope << 24);
  return key;
}

function actionsOf({ decisions, allowedSources }: Frontend): number {
  let bits = 0;
  for (const source of sourceClasses) bits |= actionOf(decisions[source]) << (sourceClassIndex[source] * actionBits);
  return allowedSources === 'any' ? bits : bits | frontendFlags.sourceRanges | frontendFlags.socketsPass;
}

const setActions = { Cluster: actions.cluster, Local: actions.local } as const;

function actionOf(decision: Decision): number {
  switch (decision.kind) {
    case 'reject':
      return actions.reject;
    case 'drop':
      return actions.drop;
    case 'forward':
      return setActions[decision.to] | (decision.masquerade ? masqueradeBit : 0);
    default:
      return assertNever(decision);
  }
}

/** Ranges are stored by service, not by frontend; core gives all restricted frontends of a Service the same ones. */
function rangesOf({ key, frontends }: ServiceForwarding): readonly Cidr[] {
  let ranges: readonly Cidr[] | undefined;
  for (const { allowedSources } of frontends) {
    if (allowedSources === 'any') continue;
    if (ranges !== undefined && !isEqual(ranges, allowedSources)) {
      throw new HostError('ebpf.sourceRanges', `cannot write ${key}: its frontends have different source ranges`);
    }
    ranges = allowedSources;
  }
  return ranges ?? nothing;
}

function affinitySeconds(timeout: number): number {
  return Math.min(Math.max(Math.ceil(timeout / 1000), affinityBounds.min), affinityBounds.max);
}
