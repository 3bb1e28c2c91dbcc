import { emptyState, type ScenarioEndpoint, type ScenarioService, type ScenarioState } from '@switchyard/scenarios';
import type { ScriptedProxy } from './scripted-proxy.ts';

/** Sequence, what it does behind "when it", how, and which check must fail. */
export type WrongRow = readonly [sequence: string, wrong: string, proxy: Partial<ScriptedProxy>, check: RegExp];

/** Endpoints as the proxy takes them, or does not. */
export function withEndpoints(change: (one: ScenarioEndpoint) => ScenarioEndpoint | undefined): Partial<ScriptedProxy> {
  return { apply: (wanted) => ({ ...wanted, endpoints: wanted.endpoints.flatMap((one) => change(one) ?? []) }) };
}

/** Services as the proxy takes them. */
export function withServices(change: (one: ScenarioService) => ScenarioService): Partial<ScriptedProxy> {
  return {
    apply: (wanted) => ({
      ...wanted,
      services: new Map([...wanted.services].map(([name, one]) => [name, change(one)])),
    }),
  };
}

/** Endpoints that are no longer wanted stay, of Services that are. */
export const keepsOldEndpoints: Partial<ScriptedProxy> = {
  apply: (wanted, kernel) => {
    const old = kernel.endpoints.filter(
      ({ service, ip }) =>
        wanted.services.has(service) && !wanted.endpoints.some((one) => one.service === service && one.ip === ip),
    );
    return { ...wanted, endpoints: [...wanted.endpoints, ...old] };
  },
};

/** Right but for what a start makes of the cluster. */
export const onlyOnStart = (wrong: ScriptedProxy['apply']): Partial<ScriptedProxy> => ({
  apply: (wanted, kernel, cause) => (cause === 'start' ? wrong(wanted, kernel, cause) : wanted),
});

/** A Service keeps its first settings. */
export const ignoresServiceChanges: Partial<ScriptedProxy> = {
  apply: (wanted, kernel) => ({
    ...wanted,
    services: new Map([...wanted.services].map(([name, one]) => [name, kernel.services.get(name) ?? one])),
  }),
};

/** Takes its rules with it when it ends. */
export const flushes: Partial<ScriptedProxy> = { ended: () => emptyState };
/** Begins by emptying the kernel. */
export const startsEmpty: Partial<ScriptedProxy> = { starting: () => emptyState };

/** The conditions that an endpoint had first it keeps. */
export const keepsConditions: Partial<ScriptedProxy> = {
  apply: (wanted, kernel) => ({
    ...wanted,
    endpoints: wanted.endpoints.map((one) => kernel.endpoints.find(({ ip }) => ip === one.ip) ?? one),
  }),
};

/** Whether both families have endpoints. */
export function isWhole({ endpoints }: ScenarioState): boolean {
  return endpoints.some(({ ip }) => ip.includes(':')) && endpoints.some(({ ip }) => !ip.includes(':'));
}

/** A Service that went stays, with its endpoints. */
export const keepsOldServices: ScriptedProxy['apply'] = (wanted, kernel) => ({
  ...wanted,
  services: new Map([...kernel.services, ...wanted.services]),
  endpoints: [...wanted.endpoints, ...kernel.endpoints.filter(({ service }) => !wanted.services.has(service))],
});
