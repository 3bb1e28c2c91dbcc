import {
  type HttpAnswer,
  type HttpHandler,
  type HttpReply,
  type HttpRequest,
  textAnswer,
} from '@switchyard/core/health';
import { type Logger, type Millis, seconds } from '@switchyard/core';
import { oneAtATime, get, type Route } from './route.ts';
import type { Profiler } from './profiler.ts';

interface ProfilingRoutesOptions {
  readonly profiler: () => Promise<Profiler>;
  /** Of this process, its name first. */
  readonly commandLine: readonly string[];
  /** As `-v` does; takes effect at once. */
  readonly setVerbosity: (verbosity: number) => void;
  readonly logger: Logger;
}

const longestSeconds = 600;

/** Routes of `enableProfiling`: those of Go's paths that apply to a Node.js process, and `/debug/flags/v`. */
export function profilingRoutes(options: ProfilingRoutesOptions): readonly Route[] {
  const { profiler, commandLine } = options;
  return [
    get('/debug/pprof', () => textAnswer(301, '', { Location: '/debug/pprof/' })),
    get('/debug/pprof/', () => textAnswer(200, index)),
    get('/debug/pprof/profile', profileHandler(profiler, 'cpu', seconds(30))),
    get('/debug/pprof/heap', profileHandler(profiler, 'heap', seconds(10))),
    get('/debug/pprof/cmdline', () => textAnswer(200, commandLine.join('\0'))),
    get('/debug/flags', () => textAnswer(200, flagsIndex)),
    get('/debug/flags/', () => textAnswer(200, flagsIndex)),
    { path: '/debug/flags/v', methods: ['PUT'], answer: (request) => verbosityAnswer(request, options) },
  ];
}

const index = [
  '/debug/pprof/',
  '',
  'profile?seconds=N  CPU profile of N seconds (default 30)',
  'heap?seconds=N     allocations of N seconds (default 10) that stay in use',
  'cmdline            command line of this process, separated by NUL',
  '',
  'Profiles are for "go tool pprof"; with &format=v8 they are for Chrome DevTools (.cpuprofile, .heapprofile).',
  "Not here, since this is a Node.js process: Go's allocs, block, goroutine, mutex, symbol, threadcreate, trace.",
  'No heap snapshot is served: it would hold credentials.',
  '',
].join('\n');

const flagsIndex = '/debug/flags/\n\nv  PUT a number: verbosity of the log, as -v\n';

function profileHandler(
  profiler: ProfilingRoutesOptions['profiler'],
  kind: keyof Profiler,
  byDefault: Millis,
): HttpHandler {
  return oneAtATime(async ({ query, method }, signal): Promise<HttpReply> => {
    const text = query.get('seconds');
    const value = Number(text ?? byDefault / 1000);
    if (!(value > 0 && value <= longestSeconds) || text === '') {
      return textAnswer(400, `400 seconds is a number of more than 0 and at most ${longestSeconds}\n`);
    }
    const format = query.get('format') ?? 'pprof';
    if (format !== 'pprof' && format !== 'v8') return textAnswer(400, "400 format is 'pprof' or 'v8'\n");
    if (method === 'HEAD') return textAnswer(200, '');
    const profile = await (await profiler())[kind]({ duration: seconds(value), format }, signal);
    const file = format === 'v8' ? `switchyard-agent.${kind}profile` : 'profile';
    return {
      status: 200,
      headers: {
        'Content-Type': format === 'v8' ? 'application/json' : 'application/octet-stream',
        'X-Content-Type-Options': 'nosniff',
        'Content-Disposition': `attachment; filename="${file}"`,
      },
      pieces: whole(profile),
    };
  });
}

async function* whole<T>(piece: T): AsyncGenerator<T, void, undefined> {
  yield piece;
}

function verbosityAnswer({ body }: HttpRequest, { setVerbosity, logger }: ProfilingRoutesOptions): HttpAnswer {
  if (!/^-?\d{1,9}$/.test(body)) {
    return textAnswer(400, `failed set klog.logging.verbosity ${body.slice(0, 100)}: not a number\n`);
  }
  setVerbosity(Number(body));
  logger.info('verbosity set by request', { verbosity: Number(body) });
  return textAnswer(200, `successfully set klog.logging.verbosity to ${body}\n`);
}
