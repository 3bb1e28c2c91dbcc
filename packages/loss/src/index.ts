export * from './loss-model.ts';
export * from './check-timing.ts';
export * from './hole.ts';
export * from './rollout-setting.ts';
export * from './predict-rollout.ts';
export * from './required-serving.ts';
export * from './known-checks.ts';
