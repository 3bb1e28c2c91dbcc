import type { LogLevel } from '@switchyard/host';
import { Command, InvalidArgumentError, Option } from 'commander';
import { healthProfiles } from '../health-profile/health-profiles.ts';
import { version } from '../version.ts';

/** The flags as they were given. */
export interface RawFlags {
  readonly runtime: 'docker' | 'process';
  readonly containerEngine: string;
  readonly network?: string;
  readonly image: string;
  readonly cluster?: readonly string[];
  readonly publishPorts?: string;
  readonly kubeconfig?: string;
  readonly address?: readonly string[];
  readonly pool?: readonly string[];
  readonly interface?: string;
  readonly netns?: string;
  readonly healthCheckProfile: string;
  readonly healthCheckInterval?: string;
  readonly healthCheckDownInterval?: string;
  readonly healthCheckFall?: string;
  readonly healthCheckRise?: string;
  readonly healthCheckTimeout?: string;
  readonly connectTimeout?: string;
  readonly fastDrain: boolean;
  readonly leaderElect: boolean;
  readonly leaderElectLeaseDuration: string;
  readonly leaderElectRenewDeadline: string;
  readonly leaderElectRetryPeriod: string;
  readonly leaderElectResourceName: string;
  readonly leaderElectResourceNamespace: string;
  readonly eventLog?: string;
  readonly keepOnExit?: boolean;
  readonly haproxy: string;
  readonly runDirectory?: string;
  readonly logLevel: LogLevel;
}

const description = `Gives Services of type LoadBalancer an address and a load balancer, and writes their status.

  switchyard-lb [run] [flags]      runs until it is stopped (SIGTERM)
  switchyard-lb check SERVICE ...  what a rolling update will cost; see check --help
  switchyard-lb profiles           the health-check profiles there are`;

const annotations = `
Annotations of a Service:
  lb.switchyard.dev/health-check-profile       as --health-check-profile
  lb.switchyard.dev/health-check-interval      as the flags of these names; likewise -down-interval, -fall, -rise, -timeout
  lb.switchyard.dev/path                       proxy (default), or transparent: clients' addresses are kept up to the nodes' proxies, and
                                               behind them with externalTrafficPolicy: Local; TCP and UDP
  lb.switchyard.dev/proxy-protocol             v2: TCP connections begin with a PROXY protocol header
  lb.switchyard.dev/fast-drain                 true, false: as --fast-drain

Served are Services without spec.loadBalancerClass, and those of class switchyard.dev/lb.
`;

/** The command line of `switchyard-lb run`. Nothing is written and nothing exits: errors are thrown as `CommanderError`. */
export function newRunCommand(): Command {
  const command = new Command('switchyard-lb')
    .description(description)
    .addHelpText('after', annotations)
    .configureHelp({ helpWidth: 140 })
    .helpOption('-h, --help', 'show this text')
    .version(`switchyard-lb ${version}`, '--version', 'show the version')
    .exitOverride()
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined })
    .allowExcessArguments(false);
  addClusterFlags(command);
  addDockerFlags(command);
  addProcessFlags(command);
  addHealthCheckFlags(command);
  addLeaderFlags(command);
  return command
    .option('--event-log <file>', 'append a JSON line whenever a load balancer begins or stops using a node')
    .addOption(
      new Option('--log-level <level>', 'how much to log')
        .choices(['error', 'warn', 'info', 'debug', 'trace'])
        .default('info'),
    );
}

function addClusterFlags(command: Command): void {
  command
    .addOption(
      new Option('--runtime <kind>', 'docker: a container for each load balancer; process: one HAProxy for all')
        .choices(['docker', 'process'])
        .default('docker'),
    )
    .option('--cluster <name>', 'serve only these kind clusters (default: all); repeatable', collect)
    .option('--kubeconfig <file>', 'serve the cluster it reaches, instead of looking for kind clusters');
}

function addDockerFlags(command: Command): void {
  command
    .option('--container-engine <program>', 'docker, podman, nerdctl, or a path to one of them', 'docker')
    .option('--network <name>', "the network of kind's nodes (default: KIND_EXPERIMENTAL_DOCKER_NETWORK, or kind)")
    .option('--image <name>', 'what load balancers are made from', `switchyard/load-balancer:${version}`)
    .option(
      '--enable-lb-port-mapping, --publish-ports [address]',
      'publish the ports of Services on this machine, for Docker Desktop (default address: 127.0.0.1)',
    );
}

function addProcessFlags(command: Command): void {
  command
    .option(
      '--pool <cidr>',
      "addresses for Services (docker: default is the top end of the network's subnets)",
      collect,
    )
    .option('--address <ip>', "process: the host's own address, one per family, for all Services", collect)
    .option('--interface <name>', "process: where clients are, in a namespace that is not the machine's own")
    .option('--netns <name>', 'process: run HAProxy in this namespace of /run/netns (default: our own)')
    .option('--keep-on-exit', 'process: leave HAProxy running; the next start takes it over')
    .option('--haproxy <program>', 'process: HAProxy 2.6 or newer', 'haproxy')
    .option('--run-directory <folder>', 'process: sockets and configuration (default: /run/switchyard-lb/<namespace>)');
}

function addHealthCheckFlags(command: Command): void {
  command
    .option('--health-check-profile <name>', Object.keys(healthProfiles).join(', '), 'cloud-provider-kind')
    .option('--health-check-interval <duration>', 'pause between two checks, such as 5s or 500ms')
    .option('--health-check-down-interval <duration>', 'the same for a node that is out')
    .option('--fall, --health-check-fall <count>', 'failed checks until a node is taken out')
    .option('--rise, --health-check-rise <count>', 'good checks until a node is used again')
    .option('--timeout, --health-check-timeout <duration>', "longest wait for a check's answer (default: the interval)")
    .option('--connect-timeout <duration>', 'longest wait for a connection to a node')
    .option('--fast-drain [boolean]', 'follow EndpointSlices: take nodes out before checks fail', flag, false);
}

function addLeaderFlags(command: Command): void {
  command
    .option('--leader-elect [boolean]', 'work only while holding a Lease in the cluster', flag, true)
    .option('--leader-elect-lease-duration <duration>', 'time that others wait for a silent leader', '15s')
    .option('--leader-elect-renew-deadline <duration>', 'a leader that has not renewed for this long stops', '10s')
    .option('--leader-elect-retry-period <duration>', 'pause between attempts', '2s')
    .option('--leader-elect-resource-name <name>', 'name of the Lease', 'switchyard-lb')
    .option('--leader-elect-resource-namespace <name>', 'namespace of the Lease', 'kube-system');
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...value.split(',')];
}

/** A flag without a value is true, as in Go. */
function flag(value: string | boolean): boolean {
  if (value === 'true' || value === true) return true;
  if (value === 'false') return false;
  throw new InvalidArgumentError('It must be true or false.');
}
