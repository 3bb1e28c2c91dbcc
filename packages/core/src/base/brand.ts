declare const brand: unique symbol;

/**
 * A `T` that passed a check. Each brand has exactly one constructor function, which validates; an
 * `as` cast to a brand anywhere else is a defect.
 */
export type Branded<T, B extends string> = T & { readonly [brand]: B };
