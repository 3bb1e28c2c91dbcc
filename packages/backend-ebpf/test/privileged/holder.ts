import { fileURLToPath } from 'node:url';
import type { LabNode, LabProcess } from '@switchyard/lab';
import type { HolderCommand, HolderOptions } from './backend-holder.ts';

const program = fileURLToPath(new URL('backend-holder.ts', import.meta.url));

/** A process on a node that holds a backend; see `backend-holder.ts`. */
export class Holder {
  readonly #process: LabProcess;
  #answers: PromiseWithResolvers<unknown> = Promise.withResolvers();

  private constructor(process: LabProcess) {
    this.#process = process;
    process.child.on('message', (message) => this.#answers.resolve(message));
    void process.ended.then((how) => this.#answers.resolve({ status: 'ended', how, log: process.logFile }));
  }

  /** Starts one in the node's namespace and waits until it is there. It ends with the lab. */
  static async start(node: LabNode, options: HolderOptions): Promise<Holder> {
    const args = ['--conditions=@switchyard/source', '--no-warnings', program, JSON.stringify(options)];
    const holder = new Holder(node.spawn(process.execPath, args, { ipc: true, logName: 'holder' }));
    const answer = await holder.#answers.promise;
    if (answer !== 'ready') throw new Error(`no backend: ${JSON.stringify(answer)}`);
    return holder;
  }

  /** Result of a command. */
  ask(command: HolderCommand): Promise<unknown> {
    this.#answers = Promise.withResolvers();
    this.#process.child.send(command);
    return this.#answers.promise;
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    this.#process.child.kill('SIGKILL');
    await this.#process.ended;
  }
}
