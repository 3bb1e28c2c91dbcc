import { type HttpAnswer, type HttpRequest, type Logger, type Millis, seconds, textAnswer } from '@switchyard/core';
import { oneAtATime } from './one-at-a-time.ts';
import type { Profiler } from './profiler.ts';
import type { Route } from './route.ts';

/** What the profiling endpoints need. */
export interface ProfilingRoutesOptions {
  readonly profiler: () => Promise<Profiler>;
  /** Of this process, its name first. */
  readonly commandLine: readonly string[];
  /** As `-v` does; takes effect at once. */
  readonly setVerbosity: (verbosity: number) => void;
  readonly logger: Logger;
}

const defaultDuration = { profile: seconds(30), heap: seconds(10) };
const longestSeconds = 600;

/** What `enableProfiling` adds: Go's paths as far as a Node.js process has something to say there, and `/debug/flags/v`. */
export function profilingRoutes(options: ProfilingRoutesOptions): readonly Route[] {
  const { profiler, commandLine } = options;
  return [
    { path: '/debug/pprof', methods: ['GET'], answer: () => textAnswer(301, '', { Location: '/debug/pprof/' }) },
    { path: '/debug/pprof/', methods: ['GET'], answer: () => textAnswer(200, index) },
    {
      path: '/debug/pprof/profile',
      methods: ['GET'],
      answer: oneAtATime((request, signal) =>
        profileAnswer({ request, byDefault: defaultDuration.profile, name: 'switchyard-agent.cpuprofile' }, async (d) =>
          (await profiler()).cpu(d, signal),
        ),
      ),
    },
    {
      path: '/debug/pprof/heap',
      methods: ['GET'],
      answer: oneAtATime((request, signal) =>
        profileAnswer({ request, byDefault: defaultDuration.heap, name: 'switchyard-agent.heapprofile' }, async (d) =>
          (await profiler()).heap(d, signal),
        ),
      ),
    },
    { path: '/debug/pprof/cmdline', methods: ['GET'], answer: () => textAnswer(200, commandLine.join('\0')) },
    { path: '/debug/flags', methods: ['GET'], answer: () => textAnswer(200, flagsIndex) },
    { path: '/debug/flags/', methods: ['GET'], answer: () => textAnswer(200, flagsIndex) },
    { path: '/debug/flags/v', methods: ['PUT'], answer: (request) => verbosityAnswer(request, options) },
  ];
}

const index = [
  '/debug/pprof/',
  '',
  'profile?seconds=N  where time goes for N seconds (default 30): .cpuprofile, for Chrome DevTools or speedscope',
  'heap?seconds=N     who allocates in N seconds (default 10) what stays in use: .heapprofile, for Chrome DevTools',
  'cmdline            the command line of this process, its parts separated by NUL',
  '',
  "Not here, since this is a Node.js process: Go's allocs, block, goroutine, mutex, symbol, threadcreate, trace.",
  'The formats are V8\'s, not those of "go tool pprof". No heap snapshot is served: it would hold credentials.',
  '',
].join('\n');

const flagsIndex = '/debug/flags/\n\nv  PUT a number: verbosity of the log, as -v\n';

interface Asked {
  readonly request: HttpRequest;
  readonly byDefault: Millis;
  /** Of the file. */
  readonly name: string;
}

async function profileAnswer(
  { request, byDefault, name }: Asked,
  take: (duration: Millis) => Promise<string>,
): Promise<HttpAnswer> {
  const text = request.query.get('seconds');
  const value = Number(text ?? byDefault / 1000);
  if (!(value > 0 && value <= longestSeconds) || text === '') {
    return textAnswer(400, `400 seconds is a number of more than 0 and at most ${longestSeconds}\n`);
  }
  if (request.method === 'HEAD') return textAnswer(200, '');
  return {
    status: 200,
    headers: {
      'Content-Type': 'application/json',
      'X-Content-Type-Options': 'nosniff',
      'Content-Disposition': `attachment; filename="${name}"`,
    },
    body: await take(seconds(value)),
  };
}

function verbosityAnswer({ body }: HttpRequest, { setVerbosity, logger }: ProfilingRoutesOptions): HttpAnswer {
  if (!/^-?\d{1,9}$/.test(body)) {
    return textAnswer(400, `failed set klog.logging.verbosity ${body.slice(0, 100)}: not a number\n`);
  }
  setVerbosity(Number(body));
  logger.info('verbosity set by request', { verbosity: Number(body) });
  return textAnswer(200, `successfully set klog.logging.verbosity to ${body}\n`);
}
