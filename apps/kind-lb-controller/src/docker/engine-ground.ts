import { abortable, cidrFamilyOf } from '@switchyard/core';
import { inspectNetwork } from './address-source.ts';
import type { InterfaceSettings } from './container-arguments.ts';
import type { DockerCli } from './docker-cli.ts';
import { arrayOf, fieldsOf, parseJson, textOf } from './json-fields.ts';

/** What all containers stand on. */
export interface Ground {
  /** What the image's name stands for. */
  readonly imageId: string;
  readonly hasIpv6: boolean;
  readonly interfaceSettings: InterfaceSettings;
}

/** What is looked at. */
export interface EngineGroundOptions {
  readonly cli: DockerCli;
  readonly network: string;
  readonly image: string;
}

/**
 * Looks at the network and the image once for all who ask, until told to forget: an image built anew under the same name is used by the next
 * controller, and after the engine was restarted.
 */
export class EngineGround {
  readonly #options: EngineGroundOptions;
  #known: Promise<Ground> | undefined;

  constructor(options: EngineGroundOptions) {
    this.#options = options;
  }

  /** Rejects with `CliError`, which says what to do where the network or the image is missing. Asks again after that. */
  async look(signal: AbortSignal): Promise<Ground> {
    const asked = (this.#known ??= this.#ask());
    try {
      return await abortable(asked, signal);
    } catch (error) {
      if (this.#known === asked && !signal.aborted) this.#known = undefined;
      throw error;
    }
  }

  /** The engine may have other networks and images now. */
  forget(): void {
    this.#known = undefined;
  }

  /** For all who ask: not ended when one of them gives up, but by the commands' own time limit. */
  async #ask(): Promise<Ground> {
    const { cli, network: name, image } = this.#options;
    const { signal } = new AbortController();
    const network = await inspectNetwork(cli, name, signal);
    const json = await cli.run(`cannot look at image ${image}`, ['image', 'inspect', image], {}, signal);
    const interfaceSettings = await askInterfaceSettings(cli, signal);
    return {
      interfaceSettings,
      imageId: textOf(fieldsOf(arrayOf(parseJson(json, 'image inspect'))[0])['Id']) ?? '',
      hasIpv6: network.subnets.some((subnet) => cidrFamilyOf(subnet) === 'IPv6'),
    };
  }
}

/** The version that program and engine agree on decides; Podman's is another one, also where it is called docker. */
async function askInterfaceSettings(cli: DockerCli, signal: AbortSignal): Promise<InterfaceSettings> {
  if (cli.kind === 'nerdctl') return 'none'; // it has no interface yet when it sets them
  if (cli.kind === 'podman') return 'sysctl';
  const attempt = "cannot ask for the engine's version";
  const version = await cli.run(attempt, ['version', '--format', '{{.Client.APIVersion}}'], {}, signal);
  const minor = /^1\.(?<minor>\d+)\s*$/.exec(version)?.groups?.['minor'];
  return Number(minor ?? 0) >= 46 ? 'driverOption' : 'sysctl';
}
