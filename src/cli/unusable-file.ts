/** Thrown when nothing of a file can be rows: it is of another form, or has no usable header. */
export class UnusableFile extends Error {
  override readonly name = 'UnusableFile'
}
