import { arrayOf, fieldsOf, parseJson, textOf } from './json-fields.ts';
import type { DockerCli } from './docker-cli.ts';

/** What names of images stand for; looked up once, so an image built anew under the same name is used by the next controller. */
export class ImageIds {
  readonly #cli: DockerCli;
  readonly #ids = new Map<string, string>();

  constructor(cli: DockerCli) {
    this.#cli = cli;
  }

  /** The image's id. Rejects with `CliError`; it says what to do when there is no such image. */
  async idOf(image: string, signal: AbortSignal): Promise<string> {
    const known = this.#ids.get(image);
    if (known !== undefined) return known;
    const json = await this.#cli.run(`cannot look at image ${image}`, ['image', 'inspect', image], {}, signal);
    const id = textOf(fieldsOf(arrayOf(parseJson(json, 'image inspect'))[0])['Id']) ?? '';
    this.#ids.set(image, id);
    return id;
  }

  /** The engine may have other images now. */
  forget(): void {
    this.#ids.clear();
  }
}
