import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Lab, LabHost } from '@switchyard/lab';

const program = fileURLToPath(new URL('socket-driver.pl', import.meta.url));
let drivers = 0;

/** A program in a namespace that does with sockets what a test says; see `socket-driver.pl`. */
export class SocketDriver {
  readonly pid: number;
  readonly #control: Socket;
  #received = '';
  #waiting: ((line: string) => void)[] = [];

  private constructor(pid: number, control: Socket) {
    this.pid = pid;
    this.#control = control;
    control.setEncoding('utf8');
    control.on('data', (text: string) => {
      const lines = (this.#received + text).split('\n');
      this.#received = lines.pop() ?? '';
      for (const line of lines) this.#waiting.shift()?.(line);
    });
    control.on('close', () => {
      for (const answer of this.#waiting.splice(0)) answer('the driver is gone');
    });
  }

  /** Starts one in a host of the lab, and in its cgroup. It ends with the lab. */
  static async start(lab: Lab, host: LabHost): Promise<SocketDriver> {
    const path = `${lab.folder}/driver-${drivers++}`;
    const { pid } = host.spawn('perl', [program, path]);
    for (let attempt = 0; ; attempt++) {
      const control = connect(path);
      const problem = await new Promise<Error | undefined>((resolve) => {
        control.once('connect', () => resolve(undefined)).once('error', resolve);
      });
      if (problem === undefined) return new SocketDriver(pid, control);
      if (attempt === 200) throw new Error(`no driver in ${host.name}: ${problem.message}`);
      await setTimeout(20);
    }
  }

  /** One command, and the line that answers it. */
  ask(command: string): Promise<string> {
    if (this.#control.destroyed) return Promise.resolve('the driver is gone');
    const answer = Promise.withResolvers<string>();
    this.#waiting.push(answer.resolve);
    this.#control.write(`${command}\n`);
    return answer.promise;
  }

  /** Several commands at once; their answers. */
  all(...commands: readonly string[]): Promise<readonly string[]> {
    return Promise.all(commands.map((command) => this.ask(command)));
  }
}
