// Text from models, shown as text, Markdown, code or a patch. Everything becomes elements of ours with text nodes:
// no HTML of the text is taken, links lead to http(s) only, and pictures are named, not loaded.

const LONG_TEXT = 20_000; // characters shown before one asks for more
const MORE_TEXT = 200_000;
const DEEPEST = 6; // lists and quotes inside each other

function longText(text, language) {
  const code = h("code");
  const box = h("pre", { tabindex: "0" }, code);
  let shown = 0;
  const more = h("button", { type: "button", onclick: () => grow(MORE_TEXT) });
  function grow(by) {
    const piece = text.slice(shown, shown + by);
    code.append(...(shown === 0 ? coloured(piece, language) : [piece]));
    shown += piece.length;
    more.hidden = shown >= text.length;
    more.textContent = `Show more (${countOf(text.length - shown, "character")} left)`;
  }
  grow(LONG_TEXT);
  return text.length > LONG_TEXT ? h("div", {}, box, more) : box;
}

const WORDS = /^(?:and|as|async|await|break|case|catch|class|const|continue|def|default|del|do|elif|else|enum|except|export|extends|false|finally|fn|for|from|func|function|if|impl|import|in|interface|is|lambda|let|match|mut|new|nil|none|not|null|or|package|pass|pub|public|private|raise|return|self|static|struct|super|switch|this|throw|true|try|type|use|var|while|with|yield|True|False|None)$/;
const TOKENS = /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|(\/\/[^\n]*|(?:^|(?<=\s))#[^\n]*|\/\*[^]*?\*\/)|\b(\d[\w.]*)\b|\b([A-Za-z_]\w*)\b/g;
const isPatch = (text) => /^(?:diff --git |@@ -\d|--- [^\n]+\n\+\+\+ )/m.test(text.slice(0, 2000));

/** Text as nodes, coloured where that helps: code and patches only, and only by splitting it. */
function coloured(text, language) {
  if (language === "patch") return text.split(/(?<=\n)/).map(patchLine);
  if (language !== "code") return [text];
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(TOKENS)) {
    const kind = found[1] ? "string" : found[2] ? "comment" : found[3] ? "number" : WORDS.test(found[4]) ? "word" : null;
    if (!kind) continue;
    nodes.push(text.slice(end, found.index), h("span", { class: kind }, found[0]));
    end = found.index + found[0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}
function patchLine(line) {
  const kind = /^(?:\+\+\+ |--- )/.test(line) ? "file" : line.startsWith("+") ? "add" : line.startsWith("-") ? "remove" : line.startsWith("@@") ? "hunk" : null;
  return kind ? h("span", { class: kind }, line) : line;
}

const MARKED = /^ {0,3}(?:#{1,6} |```|~~~|[-*+] \S|\d+[.)] \S|> |\|.*\|\s*$)|\*\*\S|`[^`\n]+`|\]\(/m;
const isJson = (text) => { try { return /^\s*[[{]/.test(text) && typeof JSON.parse(text) === "object"; } catch { return false; } };

/** Anything that was said: a patch as a patch, JSON as code, Markdown rendered with its source behind a button. */
function prose(text) {
  if (isPatch(text)) return longText(text, "patch");
  if (text.length > LONG_TEXT || !MARKED.test(text)) return longText(text, isJson(text.slice(0, LONG_TEXT)) ? "code" : "text");
  if (isJson(text)) return longText(text, "code");
  const rendered = h("div", { class: "markdown" }, markdown(text)), source = longText(text);
  source.hidden = true;
  const button = h("button", { type: "button", class: "link", onclick: () => {
    rendered.hidden = !rendered.hidden;
    source.hidden = !rendered.hidden;
    button.textContent = rendered.hidden ? "Rendered" : "Source";
  } }, "Source");
  return h("div", { class: "prose" }, button, rendered, source);
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^ {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/;
const COLUMNS = /^\|?(?: *:?-+:? *\|)+(?: *:?-+:?)?$/;
const BEGINS = [FENCE, ITEM, RULE, /^ {0,3}#{1,6} /, /^ {0,3}>/];

/** The blocks of a Markdown text. */
function markdown(text, depth = 0) {
  const lines = text.split("\n"), out = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at], fence = FENCE.exec(line), heading = /^ {0,3}(#{1,6})\s+(.*)$/.exec(line);
    const until = (ends) => { let end = at + 1; while (end < lines.length && !ends(lines[end])) end++; return end; };
    if (line.trim() === "") at++;
    else if (fence) {
      const end = until((other) => other.trim().startsWith(fence[1]) && /^[`~]+\s*$/.test(other.trim()));
      const code = lines.slice(at + 1, end).join("\n");
      out.push(h("pre", { tabindex: "0" }, h("code", {}, coloured(code, fence[2] === "diff" || isPatch(code) ? "patch" : "code"))));
      at = end + 1;
    } else if (heading) { out.push(h("p", { class: `heading level-${heading[1].length}` }, inline(heading[2]))); at++; }
    else if (RULE.test(line)) { out.push(h("hr")); at++; }
    else if (/^ {0,3}>/.test(line) && depth < DEEPEST) {
      const end = until((other) => !/^ {0,3}>/.test(other));
      out.push(h("blockquote", {}, markdown(lines.slice(at, end).map((one) => one.replace(/^ {0,3}> ?/, "")).join("\n"), depth + 1)));
      at = end;
    } else if (ITEM.test(line) && depth < DEEPEST) at = listBlock(lines, at, out, depth);
    else if (line.includes("|") && COLUMNS.test((lines[at + 1] ?? "").trim())) {
      const end = until((other) => !other.includes("|"));
      out.push(tableBlock([line, ...lines.slice(at + 2, end)]));
      at = Math.max(end, at + 2);
    } else {
      const end = until((other) => other.trim() === "" || BEGINS.some((begin) => begin.test(other)));
      out.push(h("p", {}, inline(lines.slice(at, end).join("\n"))));
      at = end;
    }
  }
  return out;
}
function listBlock(lines, at, out, depth) {
  const [, indent, marker] = ITEM.exec(lines[at]), ordered = /\d/.test(marker), items = [];
  for (; at < lines.length; at++) {
    const found = ITEM.exec(lines[at]), deep = lines[at].search(/\S/);
    if (found && found[1].length <= indent.length) {
      if (/\d/.test(found[2]) !== ordered) break;
      items.push([found[3]]);
    } else if (deep > indent.length) items.at(-1).push(lines[at].slice(Math.min(deep, indent.length + 2)));
    else if (deep < 0 && (lines[at + 1] ?? "").search(/\S/) > indent.length) items.at(-1).push("");
    else break;
  }
  const start = ordered ? Number.parseInt(marker, 10) : 1;
  out.push(h(ordered ? "ol" : "ul", { start: start !== 1 && start }, items.map((item) => h("li", {}, item.length === 1 ? inline(item[0]) : markdown(item.join("\n"), depth + 1)))));
  return at;
}
function tableBlock(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim()));
  const [head, ...rows] = lines.map(cells);
  return h("div", { class: "scroll", role: "region", "aria-label": "A table of the text", tabindex: "0" }, h("table", {},
    h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.slice(0, 100).map((cell) => h("td", {}, cell)))))));
}

// Bounded repetitions: the time of hostile texts grows with their length, not with its square.
const INLINE = /`([^`\n]{1,500})`|\*\*([^*]{1,500})\*\*|\*([^*\s][^*\n]{0,500})\*|~~([^~\n]{1,500})~~|(!?)\[([^\]\n]{0,500})\]\(([^()\s]{1,2000})(?: [^)\n]{0,500})?\)|(https?:\/\/[^\s<>()"'`]{1,2000})/g;

function inline(text, depth = 0) {
  const nodes = [];
  let end = 0;
  for (const found of depth < 3 ? text.matchAll(INLINE) : []) {
    const [all, code, bold, italic, struck, picture, label, target, bare] = found;
    nodes.push(text.slice(end, found.index));
    if (code) nodes.push(h("code", {}, code));
    else if (bold) nodes.push(h("strong", {}, inline(bold, depth + 1)));
    else if (italic) nodes.push(h("em", {}, inline(italic, depth + 1)));
    else if (struck) nodes.push(h("s", {}, inline(struck, depth + 1)));
    else if (picture) nodes.push(h("span", { class: "tone-muted" }, `[picture: ${label || "without a name"}, ${target}]`));
    else nodes.push(linkTo(bare ?? target, label, all));
    end = found.index + all.length;
  }
  nodes.push(text.slice(end));
  return nodes;
}
/** A link whose address can be read, because its words may say another one; anything but http(s) stays text. */
function linkTo(target, label, all) {
  if (!/^https?:\/\//i.test(target) || !URL.canParse(target)) return all;
  const link = h("a", { href: new URL(target).href, rel: "noopener noreferrer nofollow", target: "_blank" }, label || target);
  return label && label !== target ? [link, h("span", { class: "tone-muted" }, ` (${target})`)] : link;
}
