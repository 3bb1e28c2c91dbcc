export { hooksOf } from '../kernel/kernel.ts';
