/** A command's flags as commander gives them: text, or true for a switch. */
export type Options = Readonly<Record<string, string | boolean | undefined>>
