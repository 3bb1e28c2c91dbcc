import type { CommandRunner } from '@switchyard/host';

/** One `iptables-restore`. */
export interface Restore {
  readonly bytes: number;
  readonly lines: number;
  /** From the start of the program to its end, in milliseconds. */
  readonly took: number;
}

/** A runner that notes what is restored. */
export interface RecordingRunner extends CommandRunner {
  /** Restores since the last call. */
  taken(): readonly Restore[];
}

/** Notes the restores that go through a runner. */
export function recordingRunner(runner: CommandRunner): RecordingRunner {
  let restores: Restore[] = [];
  return {
    async run(file, args, options) {
      if (!file.endsWith('-restore')) return runner.run(file, args, options);
      let bytes = 0;
      let lines = 0;
      function* counted(pieces: string | Iterable<string>): Iterable<string> {
        for (const piece of typeof pieces === 'string' ? [pieces] : pieces) {
          bytes += Buffer.byteLength(piece);
          lines += piece.split('\n').length - 1;
          yield piece;
        }
      }
      const start = performance.now();
      const result = await runner.run(file, args, { ...options, stdin: counted(options.stdin ?? '') });
      restores.push({ bytes, lines, took: performance.now() - start });
      return result;
    },
    taken() {
      const taken = restores;
      restores = [];
      return taken;
    },
  };
}
