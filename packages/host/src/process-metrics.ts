import { readdirSync, readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectedFamily, type MetricFamily } from './prometheus-text.ts';

/** Sampling interval of the event loop's delay, in milliseconds. Ten samples a second were most of an idle agent's CPU. */
const resolution = 1000;

/** Process metrics under the names that Prometheus clients share, and Node's own metrics. Linux only. */
export interface ProcessMetrics extends Disposable {
  /** Returns all families. Delays and utilization cover the time since the previous call. */
  collect(): readonly MetricFamily[];
}

/** Starts measuring the event loop. */
export function watchProcess(): ProcessMetrics {
  const delays = monitorEventLoopDelay({ resolution });
  delays.enable();
  let past = performance.eventLoopUtilization();
  return {
    collect() {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, past);
      past = now;
      const families = [...processFamilies(), ...memoryFamilies(), ...loopFamilies(delays, utilization)];
      delays.reset();
      return families;
    },
    [Symbol.dispose]: () => void delays.disable(),
  };
}

function processFamilies(): readonly MetricFamily[] {
  const { user, system } = process.cpuUsage();
  const virtual = /^VmSize:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
  const maxFds = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
  return [
    collectedFamily('process_cpu_seconds_total', [[(user + system) / 1e6]]),
    collectedFamily('process_max_fds', [[Number(maxFds ?? Infinity)]]),
    collectedFamily('process_open_fds', [[readdirSync('/proc/self/fd').length - 1]]), // minus the descriptor of this read
    collectedFamily('process_resident_memory_bytes', [[process.memoryUsage.rss()]]),
    collectedFamily('process_start_time_seconds', [[performance.timeOrigin / 1000]]),
    collectedFamily('process_virtual_memory_bytes', [[Number(virtual ?? 0) * 1024]]),
  ];
}

function memoryFamilies(): readonly MetricFamily[] {
  const { heapTotal, heapUsed, external } = process.memoryUsage();
  const [major = '', minor = '', patch = ''] = process.versions.node.split('.');
  return [
    collectedFamily('nodejs_external_memory_bytes', [[external]]),
    collectedFamily('nodejs_heap_size_total_bytes', [[heapTotal]]),
    collectedFamily('nodejs_heap_size_used_bytes', [[heapUsed]]),
    collectedFamily('nodejs_version_info', [[1, major, minor, patch, process.version]]),
  ];
}

function loopFamilies(delays: ReturnType<typeof monitorEventLoopDelay>, utilization: number): readonly MetricFamily[] {
  // The histogram records time between samples; without samples since the last call its values are meaningless.
  const seconds = (nanoseconds: number): number =>
    delays.count === 0 ? 0 : Math.max(0, nanoseconds / 1e9 - resolution / 1000);
  return [
    collectedFamily('nodejs_eventloop_lag_max_seconds', [[seconds(delays.max)]]),
    collectedFamily('nodejs_eventloop_lag_mean_seconds', [[seconds(delays.mean)]]),
    collectedFamily('nodejs_eventloop_lag_p99_seconds', [[seconds(delays.percentile(99))]]),
    collectedFamily('nodejs_eventloop_utilization', [[utilization]]),
  ];
}
