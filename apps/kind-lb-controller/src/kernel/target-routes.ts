import { type IpFamily, ipFamilies, ipFamilyOf } from '@switchyard/core';
import type { RouteSpec } from '../spec/load-balancer-spec.ts';
import { type InterfaceOptions, newIpCommand } from './ip-command.ts';

/** Routes to targets that are no neighbours: pods, through their nodes. */
export interface TargetRoutes {
  /** Makes our routes the wanted ones. Those of others are never touched; where one has the same destination it is an error. */
  apply(wanted: readonly RouteSpec[], signal: AbortSignal): Promise<'applied' | 'unchanged'>;
}

/** Routing protocol number that marks own routes; no known program uses it (rtnetlink(7)). */
const protocol = '83';

/** Manages routes by the `ip` command. */
export function newTargetRoutes(options: InterfaceOptions): TargetRoutes {
  const { interfaceName } = options;
  const ip = newIpCommand(options);
  const found = async (family: IpFamily, signal: AbortSignal): Promise<readonly string[]> => {
    const args = [flagOf(family), 'route', 'show', 'proto', protocol, 'dev', interfaceName];
    return parseRoutes(await ip(args, `cannot list the routes (${family}) of ${interfaceName}`, signal));
  };
  const applyFamily = async (family: IpFamily, routes: readonly RouteSpec[], signal: AbortSignal): Promise<boolean> => {
    const wanted = routes.map(({ destination, via }) => `${destination} via ${via}`);
    const before = await found(family, signal);
    const missing = wanted.filter((route) => !before.includes(route));
    const stale = before.filter((route) => !wanted.includes(route));
    const run = async (verb: 'add' | 'replace' | 'del', route: string): Promise<void> => {
      const args = [flagOf(family), 'route', verb, ...route.split(' '), 'dev', interfaceName, 'proto', protocol];
      await ip(args, `cannot ${verb === 'del' ? 'remove' : 'add'} the route ${route}`, signal);
    };
    const isOurs = (route: string): boolean => before.some((one) => destinationOf(one) === destinationOf(route));
    for (const route of missing) await run(isOurs(route) ? 'replace' : 'add', route);
    // A route to the same destination was replaced.
    const left = missing.length === 0 ? before : await found(family, signal);
    for (const route of stale.filter((one) => left.includes(one))) await run('del', route);
    return missing.length + stale.length > 0;
  };
  return {
    async apply(wanted, signal) {
      let hasChanged = false;
      for (const family of ipFamilies) {
        const routes = wanted.filter(({ via }) => ipFamilyOf(via) === family);
        hasChanged = (await applyFamily(family, routes, signal)) || hasChanged;
      }
      return hasChanged ? 'applied' : 'unchanged';
    },
  };
}

/** Reads `ip route show` into `DESTINATION via GATEWAY`, destinations with their prefix length. */
export function parseRoutes(text: string): readonly string[] {
  return [...text.matchAll(/^(\S+) via (\S+) /gm)].map(([, destination = '', via = '']) => {
    const length = via.includes(':') ? 128 : 32;
    return `${destination.includes('/') ? destination : `${destination}/${length}`} via ${via}`;
  });
}

function destinationOf(route: string): string | undefined {
  return route.split(' ')[0];
}

function flagOf(family: IpFamily): '-4' | '-6' {
  return family === 'IPv4' ? '-4' : '-6';
}
