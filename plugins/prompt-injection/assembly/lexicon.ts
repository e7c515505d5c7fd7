/** Topics of words and phrases; each is a bit of a set. */
export namespace Word {
  export const none: u32 = 0;
  export const ignore: u32 = 1 << 0;
  export const prior: u32 = 1 << 1;
  export const every: u32 = 1 << 2;
  export const order: u32 = 1 << 3;
  export const rule: u32 = 1 << 4;
  export const model: u32 = 1 << 5;
  export const must: u32 = 1 << 6;
  export const not: u32 = 1 << 7;
  export const tell: u32 = 1 << 8;
  export const user: u32 = 1 << 9;
  export const send: u32 = 1 << 10;
  export const secret: u32 = 1 << 11;
  export const show: u32 = 1 << 12;
  export const prompt: u32 = 1 << 13;
  export const call: u32 = 1 << 14;
  export const tool: u32 = 1 << 15;
  export const before: u32 = 1 << 16;
  export const silent: u32 = 1 << 17;
  export const persona: u32 = 1 << 18;
  export const free: u32 = 1 << 19;
  export const addressed: u32 = 1 << 20;
  export const newOrder: u32 = 1 << 21;
  export const urgent: u32 = 1 << 22;
  export const ending: u32 = 1 << 23;
  export const count: i32 = 24;
  /** The hashes of the beginnings of phrases. */
  export const beginning: u32 = 1 << 31;
}

/**
 * The words of each bit, in the order of the bits, in English, German, French, Spanish, Italian, Portuguese, Dutch,
 * Polish, Russian, Chinese, Japanese, Korean and Arabic. Lower case, without accents on Latin letters; of scripts
 * without blanks, two characters each.
 */
export const words: StaticArray<string> = [
  "ignore|disregard|forget|override|bypass|neglect|skip over|do not follow|dont follow|stop following|pay no attention|" +
    "ignoriere|ignorieren|vergiss|vergessen|missachte|ignorez|ignore|oublie|oubliez|ignora|ignorar|ignore|olvida|olvide|" +
    "dimentica|esqueca|desconsidere|negeer|vergeet|zignoruj|zapomnij|игнорируй|игнорируйте|забудь|забудьте|" +
    "忽略|忽视|无视|忘记|忘掉|無視|忘れ|무시|잊어|تجاهل|انس",
  "previous|previously|prior|above|earlier|preceding|foregoing|past|existing|original|initial|" +
    "vorherigen|vorherige|bisherigen|obigen|fruheren|precedentes|precedente|anterieures|anteriores|anterior|previas|" +
    "precedenti|precedente|eerdere|vorige|poprzednie|poprzednich|wczesniejsze|предыдущие|предыдущих|прошлые|" +
    "之前|以前|先前|上面|以上|前の|前述|이전|앞의|السابقة",
  "all|any|every|your|alle|deine|ihre|toutes|tous|vos|tes|todas|todos|tus|sus|tutte|tutti|suas|wszystkie|" +
    "все|所有|全部|一切|すべ|全て|모든|جميع",
  "instruction|instructions|directive|directives|prompt|prompts|guidelines|commands|orders|system message|" +
    "anweisung|anweisungen|befehle|vorgaben|consignes|instrucciones|indicaciones|istruzioni|instrucoes|instructies|" +
    "instrukcje|polecenia|инструкции|инструкций|указания|指令|指示|提示|命令|지시|명령|프롬|التعليمات|تعليمات",
  "rule|rules|constraints|restrictions|safeguards|policies|training|task|tasks|context|regeln|regles|reglas|regole|regras|" +
    "zasady|правила|规则|限制|任务|規則|ルー|규칙",
  "assistant|assistants|ai|llm|llms|language model|language models|chatbot|copilot|chatgpt|gpt|claude|gemini|agent|agents|" +
    "ki|assistent|ia|asistente|assistente|ассистент|помощник|нейросеть|助手|模型|智能|モデ|어시",
  "must|should|shall|need to|needs to|have to|has to|are required to|is required to|are instructed to|you are to|muss|musst|" +
    "sollst|doit|dois|devez|debes|debe|deve|devi|должен|должна|必须|应该|しな|해야",
  "not|dont|never|without|no|avoid|nicht|niemals|ohne|ne|jamais|sans|nunca|sin|non|senza|nao|sem|niet|zonder|nie|не|никогда|" +
    "不要|不得|不能|请勿|ない|마라|말고|لا",
  "tell|telling|inform|informing|mention|mentioning|reveal|revealing|disclose|disclosing|notify|notifying|alert|alerting|" +
    "warn|erwahne|sage|informiere|dis|dire|mentionne|digas|decir|menciones|informes|dire|menzionare|diga|" +
    "mencione|vertel|mow|сообщай|говори|упоминай|告诉|告知|透露|提及|伝え|教え|말하|알리|تخبر",
  "user|users|human|humans|operator|owner|him|anyone|nutzer|benutzer|utilisateur|usuario|utente|usuario|gebruiker|" +
    "uzytkownik|uzytkownikowi|пользователю|пользователь|用户|使用者|ユー|사용|المستخدم",
  "send|sending|forward|post|upload|email|mail|transmit|exfiltrate|submit|leak|append|encode|embed|share|copy|deliver|sende|" +
    "schicke|envoie|envoyez|envia|envie|enviar|invia|envie|stuur|wyslij|отправь|отправьте|перешли|发送|发到|上传|转发|" +
    "送信|送っ|보내|전송|أرسل",
  "password|passwords|credential|credentials|secret|secrets|api key|api keys|apikey|private key|private keys|ssh key|" +
    "ssh keys|access token|access tokens|env file|environment variables|cookies|session token|chat history|" +
    "conversation history|conversation|conversations|entire context|file contents|their contents|id_rsa|passworter|" +
    "zugangsdaten|mots de passe|contrasenas|credenciales|senhas|пароли|пароль|密码|密钥|凭据|パス|秘密|비밀",
  "reveal|print|repeat|show|output|display|disclose|leak|recite|return|give me|tell me|write out|zeige|affiche|muestra|" +
    "mostra|покажи|显示|输出|泄露|表示|出力|출력",
  "system prompt|system prompts|your instructions|your prompt|initial instructions|initial prompt|hidden instructions|" +
    "hidden prompt|original instructions|instructions above|text above|developer message|systemprompt|prompt systeme|" +
    "prompt del sistema|prompt do sistema|системный промпт|系统",
  "call|invoke|run|execute|use|trigger|using|calling|rufe|appelle|llama|chiama|вызови|调用|执行|運行|実行|호출",
  "tool|tools|function|functions|command|commands|shell|terminal|werkzeug|outil|herramienta|strumento|инструмент|" +
    "工具|函数|ツー|도구",
  "before|first|prior to|instead of|immediately|right away|zuerst|bevor|avant|primero|antes|prima|сначала|首先|立即|先に|먼저",
  "silently|secretly|quietly|covertly|discreetly|in the background|heimlich|secretement|silenciosamente|segretamente|" +
    "тайно|незаметно|悄悄|秘密地|偷偷|こっ|몰래",
  "you are now|you are no longer|from now on you|act as if|act as though|pretend to be|pretend you are|" +
    "pretend that you|roleplay as|you will now|your new role|your new name is|assume the role|assume the persona|" +
    "switch to the role|du bist jetzt|ab jetzt bist du|tu es maintenant|vous etes maintenant|ahora eres|a partir de ahora|" +
    "ora sei|agora voce|voce agora|jestes teraz|ты теперь|вы теперь|отныне|你现在是|从现在开始|あなたは今|今からあな|당신은 이제",
  "developer mode|dan mode|god mode|jailbreak mode|jailbroken|do anything now|no restrictions|without restrictions|" +
    "without any restrictions|unrestricted|unfiltered|uncensored|no longer bound|not bound by|free of all|" +
    "disable safety|disable your safety|safety filters|entwicklermodus|sans restriction|sin restricciones|没有任何限制|不受限制|制限なし",
  "if you are an ai|if you are a language|if you are an llm|if you are a large|if you are an assistant|if you are chatgpt|" +
    "note to ai|note to the ai|note to llm|note for ai|attention ai|attention llm|attention assistant|dear ai|" +
    "dear assistant|dear llm|hey ai|hello ai|ai agents reading|ai reading this|llm reading this|assistant reading this|" +
    "instructions for ai|instructions for the ai|instructions for llm|instructions to the ai|message to the ai|" +
    "message to the assistant|ai instructions|instruction to the ai|instruction for the ai|hinweis an die ki|note a lia",
  "new instructions|new instruction|updated instructions|revised instructions|new task|your new task|your real task|" +
    "your actual task|your true task|real instructions|actual instructions|new objective|new directive|new system prompt|" +
    "following instructions instead|important instructions|special instructions|additional instructions|" +
    "neue anweisungen|nouvelles instructions|nuevas instrucciones|nuove istruzioni|novas instrucoes|новые инструкции|" +
    "新的指令|新指令|新しい指示|새로운 지시",
  "system override|admin override|security override|override code|override protocol|priority override|urgent instruction|" +
    "urgent instructions|critical instruction|highest priority|top priority|" +
    "this is a system message|system notice|system alert|mandatory instruction|maintenance mode|emergency protocol|" +
    "immediately stop|stop what you|stop your current",
  "end of document|end of the document|end of tool|end of user|end of prompt|end of data|end of input|end of output|" +
    "end of results|end tool output|begin system|begin instructions|begin new|start of instructions|beginning of instructions",
];

const slots: i32 = 4_096;
const hashes = new StaticArray<u32>(slots);
const sets = new StaticArray<u32>(slots);

/** The topics of a word or phrase, by its hash. */
export function setOf(hash: u32): u32 {
  let slot: i32 = hash & (slots - 1);
  while (unchecked(sets[slot]) !== Word.none && unchecked(hashes[slot]) !== hash) slot = (slot + 1) & (slots - 1);
  return unchecked(sets[slot]);
}

export function addWord(hash: u32, set: u32): void {
  let slot: i32 = hash & (slots - 1);
  while (sets[slot] !== 0 && hashes[slot] !== hash) slot = (slot + 1) & (slots - 1);
  hashes[slot] = hash;
  sets[slot] |= set;
}
