import { type Clock, type Logger, millis, newBackOff, type Random } from '@switchyard/core';
import { failureMessage } from './cli-failure.ts';
import type { DockerCli } from './docker-cli.ts';
import { type EngineEvent, parseEvent } from './engine-event.ts';

/** With what events are followed. */
export interface EngineEventsOptions {
  readonly cli: DockerCli;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Receiver of container events. Must not throw. */
export interface EngineEventsListener {
  onEvent(event: EngineEvent): void;
  /** The engine answers (again); events before are unknown. Called first, and after every outage. */
  onEngine(): void;
}

const backOffBounds = { first: millis(200), max: millis(2000) };
/** Time before the opening of a stream from which events are requested, so that none is lost between probe and stream. */
const overlap = millis(2000);

/**
 * The one stream of the engine's events, for all listeners. It is opened at once, and again, with back-off, whenever
 * it ends, until disposed.
 */
export class EngineEvents implements AsyncDisposable {
  readonly #options: EngineEventsOptions;
  readonly #listeners = new Set<EngineEventsListener>();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #isAnswering = false;

  constructor(options: EngineEventsOptions) {
    this.#options = options;
    const { signal } = this.#stop;
    this.#running = this.#run(signal).catch((error: unknown) => {
      if (!signal.aborted) options.log.error('engine events can no longer be followed', { error });
    });
  }

  /** Disposing what it returns ends the listening. */
  listen(listener: EngineEventsListener): Disposable {
    this.#listeners.add(listener);
    if (this.#isAnswering) listener.onEngine();
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Ends the stream, and waits for that. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the events are no longer wanted'));
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { cli, clock, random, log } = this.#options;
    const backOff = newBackOff(backOffBounds, random);
    let isOutageLogged = false;
    while (!signal.aborted) {
      const since = millis(clock.now() - overlap);
      const answer = await cli.try(['ps', '--quiet', '--filter', 'name=switchyard-lb-none'], {}, signal);
      if (answer.status === 'ok') {
        if (isOutageLogged) log.info('the container engine answers again', { engine: cli.program });
        isOutageLogged = false;
        const begin = clock.monotonic();
        this.#setAnswering(true);
        await this.#follow(since, signal);
        if (clock.monotonic() - begin > backOffBounds.max) backOff.reset();
      } else {
        this.#setAnswering(false);
        const reason = failureMessage('cannot follow the container engine', answer.failure);
        if (!isOutageLogged) log.warn('the container engine does not answer', { reason });
        isOutageLogged = true;
      }
      await clock.sleep(backOff.next(), signal);
    }
  }

  #setAnswering(isAnswering: boolean): void {
    this.#isAnswering = isAnswering;
    if (isAnswering) for (const one of this.#listeners) one.onEngine();
  }

  async #follow(since: number, signal: AbortSignal): Promise<void> {
    const { cli, log } = this.#options;
    const args = ['events', '--format', '{{json .}}', ...filtersOf(cli), ...sinceOf(cli, since)];
    const onLine = (line: string): void => {
      const event = parseEvent(line);
      if (event !== undefined) for (const one of this.#listeners) one.onEvent(event);
    };
    const end = await cli.follow(args, onLine, signal);
    log.debug('the stream of engine events ended', {
      reason: failureMessage('cannot follow the container engine', end),
    });
  }
}

/** Only Docker filters by what we know by the same words; the others send more, and we leave it out. */
function filtersOf({ kind }: DockerCli): readonly string[] {
  if (kind !== 'docker') return [];
  return ['type=container', 'event=create', 'event=start', 'event=die', 'event=destroy'].flatMap((one) => [
    '--filter',
    one,
  ]);
}

function sinceOf({ kind }: DockerCli, since: number): readonly string[] {
  return kind === 'nerdctl' ? [] : ['--since', (since / 1000).toFixed(3)];
}
