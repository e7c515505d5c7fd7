/** Scripts whose letters are mistaken for Latin ones, or for one another. */
const alikeScripts: readonly RegExp[] = [
  /\p{Script=Latin}/u,
  /\p{Script=Cyrillic}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Armenian}/u,
  /\p{Script=Cherokee}/u,
  /\p{Script=Georgian}/u,
  /\p{Script=Coptic}/u,
  /\p{Script=Hebrew}/u,
  /\p{Script=Arabic}/u,
  /\p{Script=Canadian_Aboriginal}/u,
];

/** Letters of Cyrillic and Greek that look like Latin ones. */
const alikeOnly = /^[0-9\-аеорсухһіјӏѕԁԛԝьѵѡαινοπρτυωϲϳ]+$/u;

/** Controls, format characters, unassigned ones, fillers, every blank but the space, and what stands for undecodable bytes. */
const unseen = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufffd]|[^\P{Zs} ]/u;

/** Returns true where a text has characters that are not seen, or not as themselves. */
export function hasUnseen(text: string): boolean {
  return unseen.test(text);
}

/** Returns true where the letters of a name are of scripts that are mistaken for one another, or are all chosen to look Latin. */
export function misleads(name: string): boolean {
  const scripts = alikeScripts.filter((script) => script.test(name)).length;
  if (scripts > 1) return true;
  return /\p{L}/u.test(name) && !/[a-z]/i.test(name) && alikeOnly.test(name.toLowerCase());
}
