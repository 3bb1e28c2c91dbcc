import { abortable, cidrFamilyOf } from '@switchyard/core';
import { inspectNetwork } from './address-source.ts';
import type { InterfaceSettings } from './container-arguments.ts';
import type { DockerCli } from './docker-cli.ts';
import { arrayOf, fieldsOf, parseJson, textOf } from './json-fields.ts';

/** Facts about network, image and engine that all containers share. */
export interface EngineFacts {
  /** Id of the image with the configured name. */
  readonly imageId: string;
  readonly hasIpv6: boolean;
  readonly interfaceSettings: InterfaceSettings;
}

/** Network and image to look up. */
export interface EngineFactsOptions {
  readonly cli: DockerCli;
  readonly network: string;
  readonly image: string;
}

/**
 * Looks up network and image once for all callers, until `forget`: an image built anew under the same name is used by the next
 * controller, and after the engine was restarted.
 */
export class EngineFactsReader {
  readonly #options: EngineFactsOptions;
  #known: Promise<EngineFacts> | undefined;

  constructor(options: EngineFactsOptions) {
    this.#options = options;
  }

  /** Rejects with `CliError`, which says what to do where the network or the image is missing. Asks again after that. */
  async look(signal: AbortSignal): Promise<EngineFacts> {
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

  /** Shared by all callers: an abort of one does not end it, only the commands' own time limit does. */
  async #ask(): Promise<EngineFacts> {
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
