/** Top-level domains that end a host written without a scheme; endings of files, such as `md`, `py` and `zip`, are left out. */
export const topDomains: ReadonlySet<string> = new Set(
  (
    "com net org edu gov mil int arpa info biz pro aero coop museum jobs mobi tel travel cat post asia xxx " +
    "app dev site online store shop blog cloud tech xyz top club vip win bid loan click life world " +
    "space fun icu works chat social news agency digital systems network solutions support services " +
    "center company team studio art bank finance money cash credit capital insure tax legal law health " +
    "care clinic school academy education university science energy eco green host hosting website software codes bot " +
    "ninja guru expert monster quest cyou buzz rest bar beer cafe pizza game games play stream racing review " +
    "trade market sale sales gift promo deals zone plus global international earth city london berlin paris nyc " +
    "example test localhost invalid onion internal local lan corp home intranet " +
    "ac ad ae af ag ai al am ao ar at au aw az ba bb bd be bf bg bh bi bj bn bo br bs bt bw by bz ca cd cf cg ch ci ck cl cm " +
    "cn co cr cu cv cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gr gt gu " +
    "gw gy hk hn hr ht hu ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr lt lu " +
    "lv ly ma mc me mg mh mk mn mo mq mr mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk " +
    "pn pr pt pw qa re ro ru rw sa sb sc sd se sg si sk sl sm sn so sr st su sv sx sy sz tc td tg th tj tk tl tm tn to tr " +
    "tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw"
  ).split(" "),
);
