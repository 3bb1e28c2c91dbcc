export * from './apply/change-group.ts';
export * from './apply/commit-groups.ts';
export * from './apply/group-writer.ts';
export * from './apply/kernel-differs-error.ts';
export * from './apply/run-apply.ts';
