/**
 * The package's entry without its native part, whose own declarations point at a folder that cannot be
 * imported: it is the same `Packr`.
 */
declare module 'msgpackr/pack' {
  export { Packr } from 'msgpackr'
}
