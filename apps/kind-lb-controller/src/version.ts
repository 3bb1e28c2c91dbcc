/** The version of this program; equal to its package.json. */
export const version = '0.1.0';
