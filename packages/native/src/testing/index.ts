export { clearMap } from './map-cases.ts';
export { queryTcx, type TcxProgram } from './query-tcx.ts';
export { enableRunStats, runStatistics } from './run-statistics.ts';
export * from './scripted-socket.ts';
export { MemoryBpfMap, type MemoryBpfMapOptions } from './memory-bpf-map.ts';
